"""The sequence operators on arrays of any library, by their newest versions."""

from collections import abc
from typing import Any

from gpuslice.arguments import Ints
from gpuslice.delivery import deliver, deliver_one
from gpuslice.dtypes import DType, dtype_name
from gpuslice.errors import prefixes_errors
from gpuslice.lazy import sequences
from gpuslice.libraries import Array, ArrayT, library_of, plain_array
from gpuslice.operators.known import KnownCalls, KnownJoins, key_of, key_of_join, key_of_split
from gpuslice.sequence import Sequence, SequenceLike, as_sequence, items_of, known_dtype
from gpuslice.versions import newest

_items = KnownCalls()
_splits = KnownCalls()
_joins = KnownJoins()


@prefixes_errors(newest("SequenceAt"))
def sequence_at(
    seq: SequenceLike[ArrayT], position: int | Array, *, copy: bool | None = True, out: ArrayT | None = None
) -> ArrayT:
    """Return a copy of the tensor at a position of a sequence.

    Parameters
    ----------
    seq : Sequence, list or tuple of arrays
    position : int or integer array of size 1
        In [-n, n - 1] for n tensors. Negative values count from the end.
    copy : bool or None
    out : array, optional
        Both as for `slice`. ``out`` must not overlap the tensor. It may be another one of the sequence.

    Returns
    -------
    array
        In the library, dtype and device of the tensor.

    Raises
    ------
    IndexError
        ``position`` is out of range, or an array of another number of values.
    TypeError
        ``seq`` is not a sequence, its dtypes differ, ``position`` is not an integer (a list is none), or ``out`` has
        another library or dtype.
    ValueError
        ``copy`` and ``out`` cannot be satisfied.

    Notes
    -----
    Source: ONNX SequenceAt, version 11.
    """
    view = sequences.sequence_at(as_sequence(seq, argument="seq"), position, argument="seq")[0]
    key = key_of(view.array, (), (), None, None) if copy is True else None  # a slice without bounds
    array: ArrayT | None = _items.deliver_one(key, view.array, out)
    if array is None:
        _items.learn(key, view.array, [view])
        array = _items.deliver_one(key, view.array, out)
    return deliver_one(view, copy, out) if array is None else array


@prefixes_errors(newest("SequenceConstruct"))
def sequence_construct(*inputs: ArrayT) -> Sequence[ArrayT]:
    """Return a sequence of the given tensors. It holds references.

    Parameters
    ----------
    *inputs : array
        At least one, all of one dtype.

    Returns
    -------
    Sequence

    Raises
    ------
    TypeError
        An input is not an array, or the dtypes differ.
    ValueError
        There are no inputs.

    Notes
    -----
    Source: ONNX SequenceConstruct, version 11.
    """
    if not inputs:
        raise ValueError("inputs must hold at least one tensor; got none")
    return as_sequence(inputs, argument="inputs")


@prefixes_errors(newest("SequenceEmpty"))
def sequence_empty(dtype: DType | None = None) -> Sequence[Any]:
    """Return an empty sequence.

    Parameters
    ----------
    dtype : str or dtype, optional
        An ONNX name or a dtype of a library. Default: "float32".

    Returns
    -------
    Sequence

    Raises
    ------
    TypeError
        ``dtype`` is not one that ONNX's sequences can hold.

    Notes
    -----
    Source: ONNX SequenceEmpty, version 11.
    """
    return Sequence.of_items((), "float32" if dtype is None else known_dtype(dtype))


@prefixes_errors(newest("SequenceInsert"))
def sequence_insert(seq: SequenceLike[ArrayT], tensor: ArrayT, position: int | Array | None = None) -> Sequence[ArrayT]:
    """Return a sequence with a tensor inserted before a position. Both sequences hold the same arrays.

    Parameters
    ----------
    seq : Sequence, list or tuple of arrays
    tensor : array
        It has the sequence's dtype.
    position : int or integer array of size 1, optional
        In [-n, n] for n tensors. The default, n, appends.

    Returns
    -------
    Sequence

    Raises
    ------
    IndexError
        ``position`` is out of range or not one value.
    TypeError
        ``tensor`` is not an array or has another dtype, or ``position`` is not an integer.

    Notes
    -----
    Source: ONNX SequenceInsert, version 11. (onnx.reference inserts position n at the front.)
    """
    library_of(tensor, "tensor")
    array: Array = plain_array(tensor)
    return sequences.sequence_insert(as_sequence(seq, dtype_name(array.dtype), argument="seq"), array, position)[0]


@prefixes_errors(newest("SequenceErase"))
def sequence_erase(seq: SequenceLike[ArrayT], position: int | Array | None = None) -> Sequence[ArrayT]:
    """Return a sequence without the tensor at a position.

    Parameters
    ----------
    seq : Sequence, list or tuple of arrays
    position : int or integer array of size 1, optional
        In [-n, n - 1] for n tensors. Default: the last tensor.

    Returns
    -------
    Sequence

    Raises
    ------
    IndexError
        ``position`` is out of range or not one value, or the sequence is empty.
    TypeError
        ``seq`` is not a sequence, or ``position`` is not an integer.

    Notes
    -----
    Source: ONNX SequenceErase, version 11.
    """
    return sequences.sequence_erase(as_sequence(seq, argument="seq"), position)[0]


@prefixes_errors(newest("SequenceLength"))
def sequence_length(seq: SequenceLike[Any]) -> Array:
    """Return the number of tensors as a 0-d int64 array, in the library and on the device of the first one.

    Parameters
    ----------
    seq : Sequence, list or tuple of arrays

    Returns
    -------
    array
        A NumPy array if the sequence is empty.

    Raises
    ------
    TypeError
        ``seq`` is not a sequence.

    Notes
    -----
    Source: ONNX SequenceLength, version 11.
    """
    return sequences.sequence_length(as_sequence(seq, argument="seq"))[0]


@prefixes_errors(newest("SplitToSequence"))
def split_to_sequence(
    input: ArrayT,
    split: Ints | int | None = None,
    *,
    axis: int = 0,
    keepdims: int = 1,
    out: abc.Sequence[ArrayT] | None = None,
) -> Sequence[ArrayT]:
    """Split an array along an axis into a sequence of copies.

    Parameters
    ----------
    input : array of shape (d0, ...)
    split : int, 0-d or 1-D integer array, or sequence of int, optional
        A scalar is the size of every part; the last part may be smaller. A list has the size of each part. Default:
        parts of size 1.
    axis : int
        Negative values count from the end.
    keepdims : int or bool
        0 or 1. If 0 and ``split`` is not given, the parts lose the axis. Ignored if ``split`` is given, as the text
        says.
    out : list or tuple of arrays, optional
        One per part, as for `split`.

    Returns
    -------
    Sequence
        Of the arrays of ``out``, if they are given.

    Raises
    ------
    ValueError
        Sizes are negative or do not add up, a scalar is below 1, the axis is out of range, ``keepdims`` is not 0 or 1,
        or ``out`` cannot be satisfied.
    TypeError
        ``input`` is not an array, sizes are not ints, or an array of ``out`` has another library or dtype.

    Notes
    -----
    Source: ONNX SplitToSequence, version 24.
    """
    key = key_of_split(input, split, axis, keepdims)
    parts = _splits.deliver(key, input, out)
    if parts is not None:
        return Sequence.of_items(parts, dtype_name(input.dtype))  # type: ignore[attr-defined]
    sequence = sequences.split_to_sequence(input, split, axis=axis, keepdims=keepdims)[0]
    views = items_of(sequence)
    if key is not None and split is None and not keepdims:
        kept = items_of(sequences.split_to_sequence(input, axis=axis)[0])  # views of one array, unlike those
        _splits.learn(key, input, kept, dropped=axis % len(input.shape))  # type: ignore[attr-defined]
    else:
        _splits.learn(key, input, views)
    parts = _splits.deliver(key, input, out)
    if parts is None:  # a Sequence holds plain arrays, also of what is given as a subclass
        parts = list(map(plain_array, deliver(views, True, out)))
    return Sequence.of_items(parts, sequence.dtype)


@prefixes_errors(newest("ConcatFromSequence"))
def concat_from_sequence(
    seq: SequenceLike[ArrayT], *, axis: int, new_axis: int = 0, out: ArrayT | None = None
) -> ArrayT:
    """Join the tensors of a sequence along an axis, or stack them along a new one.

    Parameters
    ----------
    seq : Sequence, list or tuple of arrays
        At least one array, all of one library, device and shape (except along ``axis`` if ``new_axis`` is 0).
    axis : int
        In [-r, r - 1] for tensors of rank r, or in [-r - 1, r] with ``new_axis=1``.
    new_axis : int or bool
        0 or 1.
    out : array, optional
        As for `slice`. It must not overlap any array of ``seq``.

    Returns
    -------
    array
        Fresh and C-contiguous, or ``out``.

    Raises
    ------
    ValueError
        The sequence is empty, shapes or devices do not match, the axis is out of range, or ``out`` cannot be satisfied.
    TypeError
        ``seq`` is not a sequence, its arrays are of several libraries or dtypes, or ``out`` has another library or
        dtype.

    Notes
    -----
    Source: ONNX ConcatFromSequence, version 11.
    """
    arrays: Any = items_of(seq) if type(seq) is Sequence else tuple(seq) if type(seq) is list else seq
    key = key_of_join(arrays, axis, new_axis)
    array: ArrayT | None = _joins.deliver(key, arrays, out)
    if array is not None:
        return array
    items = as_sequence(seq, argument="seq")
    joined = sequences.concat_from_sequence(items, axis=axis, new_axis=new_axis, argument="seq")[0]
    _joins.learn(key, arrays, joined, new_axis=new_axis == 1)
    array = _joins.deliver(key, arrays, out)
    return deliver_one(joined, True, out) if array is None else array
