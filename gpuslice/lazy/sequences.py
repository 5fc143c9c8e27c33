"""The sequence operators on views. Sequences hold references, so only SplitToSequence and Concat make new views."""

import sys
from collections import abc
from typing import Any

import numpy as np

from gpuslice import rules
from gpuslice.arguments import Ints, flag, integer, integers, single_integer
from gpuslice.dtypes import T15, dtype_name
from gpuslice.engine import Joined, Lazy
from gpuslice.lazy.slicing import as_array, as_lazy, as_view, axis_of, parts
from gpuslice.libraries import Array, is_array, plain_array
from gpuslice.sequence import Item, Sequence, SequenceLike, as_sequence, items_of

# Of an array of NumPy or PyTorch.
_MOST_AXES = 64


def sequence_at(
    input_sequence: SequenceLike[Any], position: int | Array, /, *, argument: str = "input_sequence"
) -> list[Any]:
    """Return the output of SequenceAt-11: the item as a View or, in a graph, a Joined.

    ``argument`` is what messages call the sequence.
    """
    sequence = as_sequence(input_sequence)
    at = rules.normalize_position(single_integer(position, "position"), len(sequence))
    return [as_lazy(sequence[at], f"{argument}[{at}]")]


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
    view = as_lazy(sequence[0], "item")
    return [view.library.count(len(sequence), view.array)]


def split_to_sequence(
    input: Item, split: Ints | int | None = None, /, *, axis: int = 0, keepdims: int = 1
) -> list[Sequence[Any]]:
    """Return the output of SplitToSequence-11 or -24."""
    keep = flag(keepdims, "keepdims")
    listed, chunk = _sizes(split)
    tensor, axis, dim = axis_of(input, axis)
    sizes = rules.chunk_sizes(dim, chunk) if listed is None else rules.listed_sizes(dim, listed)
    items = parts(tensor, axis, sizes, keep_axis=keep or split is not None)
    return [Sequence.of_items(items, dtype_name(tensor.dtype))]


def _sizes(split: Ints | int | None) -> tuple[tuple[int, ...] | None, int]:
    """Return the sizes, if they are given one by one, and the size of every part, if they are not."""
    if split is None:
        return None, 1
    rank = len(split.shape) if type(split) is not int and is_array(split) else 0
    if rank > 1:
        raise ValueError(f"split must be 0-d or 1-D; got shape {tuple(split.shape)}")  # type: ignore[union-attr]
    if rank or (isinstance(split, abc.Sequence) and not isinstance(split, (str, bytes, bytearray))):
        return integers(split, "split"), 0
    return None, single_integer(split, "split", "an int, a sequence of ints or a 0-d or 1-D integer array")


def concat_from_sequence(
    input_sequence: SequenceLike[Any], /, *, axis: int, new_axis: int = 0, argument: str = "input_sequence"
) -> list[Joined]:
    """Return the output of ConcatFromSequence-11. ``argument`` is what messages call the sequence."""
    stack, axis = flag(new_axis, "new_axis"), integer(axis, "axis")
    sequence = as_sequence(input_sequence)
    items = items_of(sequence)
    if not items:
        raise ValueError(f"{argument} must hold at least one tensor; got an empty sequence")
    rank = len(items[0].shape)
    axis = rules.normalize_axis(axis, rank + stack)
    if stack and rank >= _MOST_AXES:
        raise ValueError(f"{argument} must hold tensors of at most {_MOST_AXES - 1} axes with new_axis=1; got {rank}")
    if sequence.dtype == "string":
        items = _decoded(items, argument)
    joined = None if stack else axis
    if set(map(type, items)) == {np.ndarray} and len({_outer(item.shape, joined) for item in items}) == 1:
        return [_checked(Joined.of_numpy(_with_axis(items, axis) if stack else items, axis), argument)]
    # A loop that appends to a value makes each result a part of the next.
    views = [
        as_view(item) if isinstance(item, Joined) and item.is_deep else as_lazy(item, f"{argument}[{i}]")
        for i, item in enumerate(items)
    ]
    _check_alike(views, joined, argument)
    return [_checked(Joined.of_stack(views, axis) if stack else Joined(views, axis), argument)]


def _checked(joined: Joined, argument: str) -> Joined:
    """Return a value if an array can have so many items along its axis."""
    axis, count = joined.axis, joined.shape[joined.axis]
    if count > sys.maxsize:
        raise ValueError(f"{argument} must hold at most {sys.maxsize} items along axis {axis}; got {count}")
    return joined


def _decoded(items: abc.Sequence[Item], argument: str) -> abc.Sequence[Item]:
    """Return the items with bytes as text, by UTF-8 as ONNX has it, if they are joined to text.

    NumPy converts only ASCII to fixed-width text, and stores any bytes in a StringDType unread.
    """
    kinds = {item.dtype.kind for item in items}
    if "S" not in kinds or "O" in kinds or len(kinds) == 1:
        return items
    return [
        _as_text(as_array(item), f"{argument}[{i}]") if item.dtype.kind == "S" else item for i, item in enumerate(items)
    ]


def _as_text(array: Array, argument: str) -> Array:
    # As wide as NumPy would make it, so that the dtype of the result depends on no item.
    text = np.dtype(f"U{array.dtype.itemsize}")
    try:
        return np.asarray(np.strings.decode(plain_array(array), "utf-8"), text)
    except UnicodeDecodeError as error:
        error.reason += f", in {argument}"
        raise


def _with_axis(arrays: abc.Sequence[Array], axis: int) -> list[Array]:
    """Return NumPy arrays with a new axis of one item."""
    index = (*(slice(None),) * axis, None)
    return [array[index] for array in arrays]


def _outer(shape: tuple[int, ...], axis: int | None) -> tuple[int, ...]:
    """Return the rank, and all counts except along an axis."""
    return shape if axis is None else (len(shape), *shape[:axis], *shape[axis + 1 :])


def _check_alike(views: abc.Sequence[Lazy], axis: int | None, argument: str) -> None:
    """Raise an error if an item of a sequence cannot be joined to the first; None means along a new axis."""
    first, device, outer = views[0], views[0].device, _outer(views[0].shape, axis)
    for number, view in enumerate(views[1:], 1):
        error: type[Exception] = ValueError
        given: tuple[object, object]
        if view.library is not first.library:
            error, alike, given = TypeError, "arrays of one library", (first.library.name, view.library.name)
        elif view.device != device:
            alike, given = "arrays of one device", (device, view.device)
        elif _outer(view.shape, axis) != outer:
            where = "" if axis is None else f" except along axis {axis}"
            alike, given = f"tensors of one shape{where}", (first.shape, view.shape)
        else:
            continue
        raise error(
            f"{argument} must hold {alike}; got {given[0]} in {argument}[0] and {given[1]} in {argument}[{number}]"
        )
