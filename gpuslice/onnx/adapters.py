"""One function an operator version: the node's inputs and attributes go in, its outputs come out, not yet copied.

Inputs are positional, attributes are keywords by their ONNX names; Split's functions also get ``outputs``, how many the
node has. Types and counts were checked against the version's schema before.
"""

from typing import TypeAlias

from gpuslice import rules
from gpuslice.arrays import Array, dtype_name, integers
from gpuslice.deferred import (
    Ints,
    erased,
    inserted,
    item_at,
    joined,
    length_of,
    parts,
    sliced,
    split_items,
    split_parts,
)
from gpuslice.engine import Joined, View, dense, read
from gpuslice.onnx.types import T15, name_of_elem_type
from gpuslice.sequence import Item, Sequence, SequenceLike, as_sequence

Value: TypeAlias = Item | Sequence


def as_view(value: Item, argument: str = "data") -> View:
    """View a tensor: an array, a view, or views side by side, which are made dense for it."""
    if isinstance(value, View):
        return value
    return View.of(dense([value])[0] if isinstance(value, Joined) else value, argument)


def as_array(value: Item) -> Array:
    """Give the items of a tensor as an array, without a copy where there need be none."""
    return read(as_view(value)) if isinstance(value, (View, Joined)) else value


def slice_1(data: Item, /, *, starts: list[int], ends: list[int], axes: list[int] | None = None) -> list[Value]:
    """Slice-1: the bounds are attributes."""
    return [sliced(as_view(data), starts, ends, axes)]


def slice_10(
    data: Item, starts: Ints, ends: Ints, axes: Ints | None = None, steps: Ints | None = None, /
) -> list[Value]:
    """Slice-10, -11, -13, and DynamicSlice-1, which has no steps."""
    return [sliced(as_view(data), starts, ends, axes, steps)]


def split_1(
    input: Item, sizes: Array | None = None, /, *, outputs: int, axis: int = 0, split: list[int] | None = None
) -> list[Value]:
    """Split-1: sizes by attribute or by a second input of the data's own, floating type."""
    if sizes is not None and split is not None:
        raise ValueError("split must be given as an attribute or as an input, not both")
    if sizes is not None:
        split = _whole_numbers(sizes)
    return split_2(input, outputs=outputs, axis=axis, split=split)


def split_2(input: Item, /, *, outputs: int, axis: int = 0, split: Ints | None = None) -> list[Value]:
    """Split-2 and -11: sizes by attribute, else equal parts."""
    return _split(as_view(input, "input"), axis, split, outputs)


def split_13(input: Item, split: Ints | None = None, /, *, outputs: int, axis: int = 0) -> list[Value]:
    """Split-13: sizes by input, else equal parts."""
    return _split(as_view(input, "input"), axis, split, outputs)


def split_18(
    input: Item, split: Ints | None = None, /, *, outputs: int, axis: int = 0, num_outputs: int | None = None
) -> list[Value]:
    """Split-18: either sizes by input or num_outputs."""
    if num_outputs is not None and num_outputs != outputs:
        raise ValueError(f"num_outputs must be the number of the node's outputs, {outputs}; got {num_outputs}")
    views = split_parts(as_view(input, "input"), split, axis, num_outputs)
    if len(views) != outputs:
        raise ValueError(f"split must have {outputs} values, one an output; got {len(views)}")
    return list(views)


def _split(view: View, axis: int, split: Ints | None, outputs: int) -> list[Value]:
    axis = rules.normalize_axis(axis, len(view.shape))
    dim = view.shape[axis]
    if split is None:
        return list(parts(view, axis, rules.equal_sizes(dim, outputs)))
    return list(parts(view, axis, rules.listed_sizes(dim, integers(split, "split"), outputs)))


def _whole_numbers(sizes: Array) -> list[int]:
    array = as_array(sizes)
    if len(array.shape) != 1:
        raise ValueError(f"split must be 1-D; got shape {tuple(array.shape)}")
    values = [float(array[i]) for i in range(array.shape[0])]
    for value in values:
        if not value.is_integer():  # neither is an infinity or NaN
            raise ValueError(f"split must be of whole numbers; got {value}")
    return [int(value) for value in values]


def sequence_at(input_sequence: SequenceLike, position: Array, /) -> list[Value]:
    """SequenceAt-11."""
    item = item_at(as_sequence(input_sequence), position)
    return [item if isinstance(item, Joined) else as_view(item)]


def sequence_construct(*inputs: Item) -> list[Value]:
    """SequenceConstruct-11; the schema has made sure of one dtype."""
    return [Sequence.holding(inputs, dtype_name(inputs[0].dtype))]


def sequence_empty(*, dtype: int | None = None) -> list[Value]:
    """SequenceEmpty-11, whose dtype is a number of TensorProto."""
    name = "float32" if dtype is None else name_of_elem_type(dtype)
    if name not in T15:
        raise TypeError(f"dtype must be that of one of {{{', '.join(sorted(T15))}}}; got {dtype}, {name}")
    return [Sequence((), name)]


def sequence_insert(input_sequence: SequenceLike, tensor: Item, position: Array | None = None, /) -> list[Value]:
    """SequenceInsert-11."""
    return [inserted(as_sequence(input_sequence, dtype_name(tensor.dtype)), tensor, position)]


def sequence_erase(input_sequence: SequenceLike, position: Array | None = None, /) -> list[Value]:
    """SequenceErase-11."""
    return [erased(as_sequence(input_sequence), position)]


def sequence_length(input_sequence: SequenceLike, /) -> list[Value]:
    """SequenceLength-11."""
    return [length_of(as_sequence(input_sequence))]


def split_to_sequence(
    input: Item, split: Ints | int | None = None, /, *, axis: int = 0, keepdims: int = 1
) -> list[Value]:
    """SplitToSequence-11 and -24."""
    view = as_view(input, "input")
    return [Sequence.holding(split_items(view, split, axis, keepdims), dtype_name(view.dtype))]


def concat_from_sequence(input_sequence: SequenceLike, /, *, axis: int, new_axis: int = 0) -> list[Value]:
    """ConcatFromSequence-11."""
    return [joined([as_view(item) for item in as_sequence(input_sequence)], axis, new_axis)]
