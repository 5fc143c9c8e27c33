"""Slice, DynamicSlice and Split on views."""

from collections import abc

from gpuslice import rules
from gpuslice.arguments import Ints, integer, integers
from gpuslice.engine import Consecutive, Joined, Lazy, View, check_parts_fit, dense, indexed
from gpuslice.libraries import Array, check_readable, library_of, shape_of
from gpuslice.sequence import Item

# No library has arrays with more axes: NumPy's limit is 64. The rules compare with the rank.
_MOST_AXES = 1000
_FEW_PARTS = 16


def as_lazy(tensor: Item, argument: str = "data") -> Lazy:
    """Return a tensor as a View, or as a Joined if it is one."""
    return tensor if isinstance(tensor, (View, Joined)) else View.of(tensor, argument)


def as_view(tensor: Item, argument: str = "data") -> View:
    """Return a tensor as a View. A Joined is copied first, once for all that need a copy."""
    if not isinstance(tensor, Joined):
        return tensor if isinstance(tensor, View) else View.of(tensor, argument)
    if tensor.copied is None:
        tensor.copied = View.of(dense([tensor])[0])
    return tensor.copied


def as_array(tensor: Item) -> Array:
    """Return a tensor whose items are read now, such as bounds, as an array, without a copy if possible.

    Not by `dense`: `gpuslice.warm_up` calls operators with kernels that copy nothing.
    """
    return indexed(tensor) if isinstance(tensor, (View, Joined)) else tensor


def slice_1(data: Item, /, *, starts: Ints, ends: Ints, axes: Ints | None = None) -> list[Lazy]:
    """Return the output of Slice-1, which has its bounds as attributes."""
    return slice_10(data, starts, ends, axes)


def slice_10(
    data: Item, starts: Ints, ends: Ints, axes: Ints | None = None, steps: Ints | None = None, /
) -> list[Lazy]:
    """Return the output of Slice-10, -11, -13, or of DynamicSlice-1, which has no steps."""
    # First, since reading an argument may run code that gives the array another shape.
    bounds = (
        integers(starts, "starts", _MOST_AXES),
        integers(ends, "ends", _MOST_AXES),
        None if axes is None else integers(axes, "axes", _MOST_AXES),
        None if steps is None else integers(steps, "steps", _MOST_AXES),
    )
    tensor = as_lazy(data)
    return [_part(tensor, rules.slice_region(tensor.shape, *bounds))]


def split_1(
    input: Item, sizes: Array | None = None, /, *, outputs: int, axis: int = 0, split: Ints | None = None
) -> abc.Sequence[Lazy]:
    """Return the outputs of Split-1: sizes by attribute, or by a second input that has the data's floating type."""
    if sizes is not None and split is not None:
        raise ValueError("split must be given as an attribute or as an input, not both")
    return split_2(input, outputs=outputs, axis=axis, split=split if sizes is None else _whole_numbers(sizes))


def split_2(input: Item, /, *, outputs: int, axis: int = 0, split: Ints | None = None) -> abc.Sequence[Lazy]:
    """Return the outputs of Split-2 or -11: sizes by attribute, else equal parts."""
    return split_13(input, split, outputs=outputs, axis=axis)


def split_13(input: Item, split: Ints | None = None, /, *, outputs: int, axis: int = 0) -> abc.Sequence[Lazy]:
    """Return the outputs of Split-13: sizes by input, else equal parts."""
    given = None if split is None else integers(split, "split")
    tensor, axis, dim = axis_of(input, axis)
    sizes = rules.equal_sizes(dim, outputs) if given is None else rules.listed_sizes(dim, given, outputs)
    return parts(tensor, axis, sizes)


def split_18(
    input: Item,
    split: Ints | None = None,
    /,
    *,
    outputs: int | None = None,
    axis: int = 0,
    num_outputs: int | None = None,
) -> abc.Sequence[Lazy]:
    """Return the outputs of Split-18: either sizes by input or num_outputs. ``outputs`` None: as many as that is."""
    if (split is None) == (num_outputs is None):
        given = "neither" if split is None else "both"
        raise ValueError(f"exactly one of split and num_outputs must be given; got {given}")
    if type(split) is int:  # numpy.split and torch.split take one, and differ in what it means
        number = rules.show_int(split)
        raise TypeError(f"split must be a sequence of sizes; got int {number}: num_outputs={number} makes equal parts")
    listed = None if split is None else integers(split, "split")
    count = None if num_outputs is None else integer(num_outputs, "num_outputs")
    tensor, axis, dim = axis_of(input, axis)
    if count is not None:
        if outputs not in (None, count):
            raise ValueError(
                f"num_outputs must be the number of the node's outputs, {outputs}; got {rules.show_int(count)}"
            )
        return parts(tensor, axis, rules.num_outputs_sizes(dim, count))
    sizes = rules.listed_sizes(dim, listed or (), outputs)
    if not sizes:
        raise ValueError("split must have at least one value, one per output; got none")
    return parts(tensor, axis, sizes)


def parts(tensor: Lazy, axis: int, sizes: abc.Sequence[int], *, keep_axis: bool = True) -> abc.Sequence[Lazy]:
    """Return consecutive parts of a tensor. If they do not keep the axis, all sizes are 1.

    Raises
    ------
    MemoryError
        There are more parts than this machine can hold.
    """
    check_parts_fit(len(sizes), len(tensor.shape))
    if len(sizes) > _FEW_PARTS and isinstance(tensor, View):
        return Consecutive(tensor, axis, sizes, keep_axis=keep_axis)
    items = [_part(tensor, region) for region in rules.split_regions(tensor.shape, axis, sizes)]
    return items if keep_axis else [_without_axis(item, axis) for item in items]


def axis_of(input: Item, axis: int) -> tuple[Lazy, int, int]:
    """Return the input as a View or Joined, the axis counted from the front, and its length."""
    axis = integer(axis, "axis")
    tensor = as_lazy(input, "input")
    axis = rules.normalize_axis(axis, len(tensor.shape))
    return tensor, axis, tensor.shape[axis]


def _without_axis(item: Lazy, axis: int) -> Lazy:
    # Without the axis along which it is joined, a value has one part, and no axis that could join it to another dtype.
    if isinstance(item, Joined) and item.axis == axis:
        item = as_view(item)
    return item.without_axis(axis)


def _part(tensor: Lazy, region: rules.Region) -> Lazy:
    if isinstance(tensor, Joined) and tensor.is_cut_up:
        return as_view(tensor).part(region)
    return tensor.part(region)


def _whole_numbers(sizes: Item) -> list[int]:
    array = as_array(sizes)
    library = library_of(array, "split")
    shape = shape_of(array, library, "split")
    if len(shape) != 1:
        raise ValueError(f"split must be 1-D; got shape {shape}")
    check_readable(array, library, "split")
    values = [float(array[i]) for i in range(shape[0])]
    for value in values:
        if not value.is_integer():  # infinities and NaN are not either
            raise ValueError(f"split must hold whole numbers; got {value}")
    return [int(value) for value in values]
