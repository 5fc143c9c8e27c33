"""The sequence operators on views. Sequences hold references, so only SplitToSequence and Concat make new views."""

from typing import Any

import numpy as np

from gpuslice import rules
from gpuslice.arguments import Ints, flag, integer, integers, single_integer
from gpuslice.dtypes import T15, dtype_name
from gpuslice.engine import Joined, View
from gpuslice.lazy.slicing import as_view, parts
from gpuslice.libraries import Array, is_array
from gpuslice.sequence import Item, Sequence, SequenceLike, as_sequence


def sequence_at(input_sequence: SequenceLike[Any], position: int | Array, /) -> list[Any]:
    """Return the output of SequenceAt-11: the item as a View or, in a graph, a Joined."""
    sequence = as_sequence(input_sequence)
    item = sequence[rules.normalize_position(single_integer(position, "position"), len(sequence))]
    return [item if isinstance(item, Joined) else as_view(item)]


def sequence_construct(*inputs: Item) -> list[Sequence[Any]]:
    """Return the output of SequenceConstruct-11; the inputs are known to have one dtype."""
    return [Sequence.of_items(inputs, dtype_name(inputs[0].dtype))]


def sequence_empty(*, dtype: str = "float32") -> list[Sequence[Any]]:
    """Return the output of SequenceEmpty-11."""
    if dtype not in T15:
        raise TypeError(f"dtype must be one of {{{', '.join(sorted(T15))}}}; got {dtype}")
    return [Sequence((), dtype)]


def sequence_insert(
    input_sequence: SequenceLike[Any], tensor: Item, position: int | Array | None = None, /
) -> list[Sequence[Any]]:
    """Return the output of SequenceInsert-11."""
    name = dtype_name(tensor.dtype)
    sequence = as_sequence(input_sequence, name)
    if name != sequence.dtype:
        raise TypeError(f"tensor must have the sequence's dtype, {sequence.dtype}; got {name}")
    count = len(sequence)
    at = count if position is None else single_integer(position, "position")
    at = rules.normalize_position(at, count, end=True)
    return [Sequence.of_items([*sequence[:at], tensor, *sequence[at:]], name)]


def sequence_erase(input_sequence: SequenceLike[Any], position: int | Array | None = None, /) -> list[Sequence[Any]]:
    """Return the output of SequenceErase-11."""
    sequence = as_sequence(input_sequence)
    at = -1 if position is None else single_integer(position, "position")
    at = rules.normalize_position(at, len(sequence))
    return [Sequence.of_items([*sequence[:at], *sequence[at + 1 :]], sequence.dtype)]


def sequence_length(input_sequence: SequenceLike[Any], /) -> list[Array]:
    """Return the output of SequenceLength-11: a 0-d int64 array beside the first item, or in NumPy without items."""
    sequence = as_sequence(input_sequence)
    if not len(sequence):
        return [np.asarray(0, dtype=np.int64)]
    item = sequence[0]
    view = item if isinstance(item, (View, Joined)) else View.of(item, "item")
    return [view.xp.asarray(len(sequence), dtype=view.xp.int64, device=view.device)]


def split_to_sequence(
    input: Item, split: Ints | int | None = None, /, *, axis: int = 0, keepdims: int = 1
) -> list[Sequence[Any]]:
    """Return the output of SplitToSequence-11 or -24."""
    view = as_view(input, "input")
    axis = rules.normalize_axis(integer(axis, "axis"), len(view.shape))
    dim = view.shape[axis]
    keep = flag(keepdims, "keepdims")
    if split is None:
        items = parts(view, axis, rules.chunk_sizes(dim, 1))
        items = items if keep else [item.without_axis(axis) for item in items]
    elif isinstance(split, (list, tuple, range)) or (is_array(split) and len(split.shape)):
        items = parts(view, axis, rules.listed_sizes(dim, integers(split, "split")))
    else:
        items = parts(view, axis, rules.chunk_sizes(dim, single_integer(split, "split")))
    return [Sequence.of_items(items, dtype_name(view.dtype))]


def concat_from_sequence(input_sequence: SequenceLike[Any], /, *, axis: int, new_axis: int = 0) -> list[Joined]:
    """Return the output of ConcatFromSequence-11."""
    items = [as_view(item) for item in as_sequence(input_sequence)]
    if not items:
        raise ValueError("input_sequence must hold at least one tensor; got an empty sequence")
    stack = flag(new_axis, "new_axis")
    axis = rules.normalize_axis(integer(axis, "axis"), len(items[0].shape) + stack)
    for item in items[1:]:
        _check_alike(items[0], item, None if stack else axis)
    return [Joined([item.with_axis(axis) for item in items] if stack else items, axis)]


def _check_alike(first: View, other: View, axis: int | None) -> None:
    if other.library is not first.library:
        raise TypeError(
            f"input_sequence must hold arrays of one library; got {first.library.name} and {other.library.name}"
        )
    if other.device != first.device:
        raise ValueError(f"input_sequence must hold arrays of one device; got {first.device} and {other.device}")
    alike = len(first.shape) == len(other.shape) and all(
        i == axis or a == b for i, (a, b) in enumerate(zip(first.shape, other.shape, strict=False))
    )
    if not alike:
        where = "" if axis is None else f" except along axis {axis}"
        raise ValueError(f"input_sequence must hold tensors of one shape{where}; got {first.shape} and {other.shape}")
