"""Slice, DynamicSlice and Split on views."""

from collections import abc
from functools import lru_cache

from gpuslice import rules
from gpuslice.arguments import Ints, integer, integers
from gpuslice.engine import Joined, View, dense, indexed
from gpuslice.libraries import Array
from gpuslice.sequence import Item

# Slices and splits of arrays of one shape are often repeated.
_slice_region = lru_cache(maxsize=1024)(rules.slice_region)
_split_regions = lru_cache(maxsize=256)(rules.split_regions)


def as_view(tensor: Item, argument: str = "data") -> View:
    """Return a tensor as a View. Joined views are copied first."""
    if isinstance(tensor, View):
        return tensor
    return View.of(dense([tensor])[0] if isinstance(tensor, Joined) else tensor, argument)


def as_array(tensor: Item) -> Array:
    """Return a tensor as an array, without a copy if possible."""
    return indexed(as_view(tensor)) if isinstance(tensor, (View, Joined)) else tensor


def slice_1(data: Item, /, *, starts: Ints, ends: Ints, axes: Ints | None = None) -> list[View]:
    """Return the output of Slice-1, which has its bounds as attributes."""
    return slice_10(data, starts, ends, axes)


def slice_10(
    data: Item, starts: Ints, ends: Ints, axes: Ints | None = None, steps: Ints | None = None, /
) -> list[View]:
    """Return the output of Slice-10, -11, -13, or of DynamicSlice-1, which has no steps."""
    view = as_view(data)
    region = _slice_region(
        view.region.shape,
        integers(starts, "starts"),
        integers(ends, "ends"),
        None if axes is None else integers(axes, "axes"),
        None if steps is None else integers(steps, "steps"),
    )
    return [view.part(region)]


def split_1(
    input: Item, sizes: Array | None = None, /, *, outputs: int, axis: int = 0, split: Ints | None = None
) -> list[View]:
    """Return the outputs of Split-1: sizes by attribute, or by a second input that has the data's floating type."""
    if sizes is not None and split is not None:
        raise ValueError("split must be given as an attribute or as an input, not both")
    return split_2(input, outputs=outputs, axis=axis, split=split if sizes is None else _whole_numbers(sizes))


def split_2(input: Item, /, *, outputs: int, axis: int = 0, split: Ints | None = None) -> list[View]:
    """Return the outputs of Split-2 or -11: sizes by attribute, else equal parts."""
    return split_13(input, split, outputs=outputs, axis=axis)


def split_13(input: Item, split: Ints | None = None, /, *, outputs: int, axis: int = 0) -> list[View]:
    """Return the outputs of Split-13: sizes by input, else equal parts."""
    view, axis, dim = _axis_of(input, axis)
    if split is None:
        return parts(view, axis, rules.equal_sizes(dim, outputs))
    return parts(view, axis, rules.listed_sizes(dim, integers(split, "split"), outputs))


def split_18(
    input: Item,
    split: Ints | None = None,
    /,
    *,
    outputs: int | None = None,
    axis: int = 0,
    num_outputs: int | None = None,
) -> list[View]:
    """Return the outputs of Split-18: either sizes by input or num_outputs. ``outputs`` None: as many as that is."""
    view, axis, dim = _axis_of(input, axis)
    if (split is None) == (num_outputs is None):
        given = "neither" if split is None else "both"
        raise ValueError(f"exactly one of split and num_outputs must be given; got {given}")
    if num_outputs is not None:
        if outputs not in (None, num_outputs):
            raise ValueError(f"num_outputs must be the number of the node's outputs, {outputs}; got {num_outputs}")
        return parts(view, axis, rules.num_outputs_sizes(dim, integer(num_outputs, "num_outputs")))
    sizes = rules.listed_sizes(dim, integers(split, "split"), outputs)
    if not sizes:
        raise ValueError("split must have at least one value, one per output; got none")
    return parts(view, axis, sizes)


def parts(view: View, axis: int, sizes: abc.Sequence[int]) -> list[View]:
    """Return consecutive parts of a view."""
    return view.parts(_split_regions(view.shape, axis, tuple(sizes)))


def _axis_of(input: Item, axis: int) -> tuple[View, int, int]:
    """Return the input as a View, the axis counted from the front, and its length."""
    view = as_view(input, "input")
    axis = rules.normalize_axis(integer(axis, "axis"), len(view.shape))
    return view, axis, view.shape[axis]


def _whole_numbers(sizes: Item) -> list[int]:
    array = as_array(sizes)
    if len(array.shape) != 1:
        raise ValueError(f"split must be 1-D; got shape {tuple(array.shape)}")
    values = [float(array[i]) for i in range(array.shape[0])]
    for value in values:
        if not value.is_integer():  # infinities and NaN are not either
            raise ValueError(f"split must hold whole numbers; got {value}")
    return [int(value) for value in values]
