"""What each operator means before anything is copied: from views and sequences to views and sequences.

The public functions copy the result at once; the graph runner goes on with it and copies at the end.
"""

from collections.abc import Sequence as Values
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from gpuslice import rules
from gpuslice.arrays import Array, dtype_name, integer, integers, is_array, namespace, single_integer
from gpuslice.arrays import device as device_of
from gpuslice.engine import Joined, View
from gpuslice.sequence import Item, Sequence

Ints: TypeAlias = Values[int] | Array

# The same slices and splits of arrays of the same shape come again and again.
_slice_region = lru_cache(maxsize=1024)(rules.slice_region)
_split_regions = lru_cache(maxsize=256)(rules.split_regions)


def sliced(view: View, starts: Ints, ends: Ints, axes: Ints | None = None, steps: Ints | None = None) -> View:
    """Give the slice of a view, not yet copied."""
    region = _slice_region(
        view.region.shape,
        integers(starts, "starts"),
        integers(ends, "ends"),
        None if axes is None else integers(axes, "axes"),
        None if steps is None else integers(steps, "steps"),
    )
    return view.part(region)


def split_parts(view: View, split: Ints | None, axis: int, num_outputs: int | None) -> list[View]:
    """Give the parts of a view by the rules of Split-18, not yet copied."""
    axis = rules.normalize_axis(axis, len(view.shape))
    dim = view.shape[axis]
    if (split is None) == (num_outputs is None):
        raise ValueError(
            f"exactly one of split and num_outputs must be given; got {'neither' if split is None else 'both'}"
        )
    if num_outputs is not None:
        return parts(view, axis, rules.num_outputs_sizes(dim, num_outputs))
    sizes = rules.listed_sizes(dim, integers(split, "split"))
    if not sizes:
        raise ValueError("split must have at least one value, one an output; got none")
    return parts(view, axis, sizes)


def parts(view: View, axis: int, sizes: Values[int]) -> list[View]:
    """Give consecutive parts of a view, not yet copied."""
    return [view.part(region) for region in _split_regions(view.shape, axis, tuple(sizes))]


def split_items(view: View, split: Ints | int | None, axis: int, keepdims: int) -> list[View]:
    """Give the items of SplitToSequence, not yet copied."""
    axis = rules.normalize_axis(integer(axis, "axis"), len(view.shape))
    dim = view.shape[axis]
    keep = _flag(keepdims, "keepdims")
    if split is None:
        items = parts(view, axis, rules.chunk_sizes(dim, 1))
        return items if keep else [item.without_axis(axis) for item in items]
    if isinstance(split, (list, tuple, range)) or (is_array(split) and len(split.shape)):
        return parts(view, axis, rules.listed_sizes(dim, integers(split, "split")))
    return parts(view, axis, rules.chunk_sizes(dim, single_integer(split, "split")))


def joined(items: list[View], axis: int, new_axis: int) -> Joined:
    """Give the items side by side, not yet copied."""
    if not items:
        raise ValueError("input_sequence must hold at least one tensor; got an empty sequence")
    stack = _flag(new_axis, "new_axis")
    rank = len(items[0].shape) + stack
    axis = rules.normalize_axis(integer(axis, "axis"), rank)
    for item in items[1:]:
        _check_alike(items[0], item, None if stack else axis)
    return Joined([item.with_axis(axis) for item in items] if stack else items, axis)


def _check_alike(first: View, other: View, axis: int | None) -> None:
    if other.xp is not first.xp:
        raise TypeError(f"input_sequence must hold arrays of one library; got {first.xp.__name__}, {other.xp.__name__}")
    if other.device != first.device:
        raise ValueError(f"input_sequence must hold arrays of one device; got {first.device} and {other.device}")
    alike = len(first.shape) == len(other.shape) and all(
        i == axis or a == b for i, (a, b) in enumerate(zip(first.shape, other.shape, strict=False))
    )
    if not alike:
        where = "" if axis is None else f" but for axis {axis}"
        raise ValueError(f"input_sequence must hold tensors of one shape{where}; got {first.shape} and {other.shape}")


def item_at(seq: Sequence, position: int | Array) -> Item:
    """Give the item at a position."""
    return seq[rules.normalize_position(single_integer(position, "position"), len(seq))]


def inserted(seq: Sequence, tensor: Item, position: int | Array | None) -> Sequence:
    """Give a sequence with ``tensor`` inserted before ``position``."""
    name = dtype_name(tensor.dtype)
    if name != seq.dtype:
        raise TypeError(f"tensor must be of the sequence's dtype, {seq.dtype}; got {name}")
    count = len(seq)
    at = count if position is None else single_integer(position, "position")
    at = rules.normalize_position(at, count, end=True)
    return Sequence.holding([*seq[:at], tensor, *seq[at:]], seq.dtype)


def erased(seq: Sequence, position: int | Array | None) -> Sequence:
    """Give a sequence without the item at ``position``."""
    at = rules.normalize_position(-1 if position is None else single_integer(position, "position"), len(seq))
    return Sequence.holding([*seq[:at], *seq[at + 1 :]], seq.dtype)


def length_of(seq: Sequence) -> Array:
    """Give the number of items as a 0-d int64 array."""
    if not len(seq):
        return np.asarray(0, dtype=np.int64)
    item = seq[0]
    deferred = isinstance(item, (View, Joined))
    xp, device = (item.xp, item.device) if deferred else (namespace(item, "item"), device_of(item))
    return xp.asarray(len(seq), dtype=xp.int64, device=device)


def _flag(value: int, argument: str) -> bool:
    flag = int(value) if isinstance(value, bool) else integer(value, argument)
    if flag not in (0, 1):
        raise ValueError(f"{argument} must be 0 or 1; got {value!r}")
    return bool(flag)
