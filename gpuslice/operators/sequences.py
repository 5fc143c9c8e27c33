"""The sequence operators on arrays of any library, as their newest versions say."""

from gpuslice.arrays import Array, DType, base_array, dtype_name, namespace
from gpuslice.deferred import Ints, erased, inserted, item_at, joined, length_of, split_items
from gpuslice.engine import View, dense
from gpuslice.errors import speaks_as
from gpuslice.results import deliver_one
from gpuslice.sequence import Sequence, SequenceLike, as_sequence, known_dtype


@speaks_as("SequenceAt-11")
def sequence_at(seq: SequenceLike, position: int | Array, *, copy: bool | None = True) -> Array:
    """Give a copy of the tensor at a position.

    Parameters
    ----------
    seq : Sequence, list or tuple of arrays
    position : int or integer array of size 1
        Counted from the end where negative.
    copy : bool or None
        As for `slice`.

    Returns
    -------
    array

    Raises
    ------
    IndexError
        ``position`` is out of range or not one value.
    TypeError
        ``seq`` is no sequence, its dtypes differ, or ``position`` is no integer.

    Notes
    -----
    Source: ONNX SequenceAt, version 11.
    """
    return deliver_one(View.of(item_at(as_sequence(seq), position)), copy)


@speaks_as("SequenceConstruct-11")
def sequence_construct(*inputs: Array) -> Sequence:
    """Make a sequence of at least one tensor; it holds references.

    Raises
    ------
    TypeError
        Something that is no array, or dtypes that differ.
    ValueError
        No inputs.

    Notes
    -----
    Source: ONNX SequenceConstruct, version 11.
    """
    if not inputs:
        raise ValueError("inputs must hold at least one tensor; got none")
    return Sequence(inputs)


@speaks_as("SequenceEmpty-11")
def sequence_empty(dtype: DType | None = None) -> Sequence:
    """Make an empty sequence of a dtype, an ONNX name or a library's dtype (default: float32).

    Raises
    ------
    TypeError
        A dtype that ONNX's sequences can't hold.

    Notes
    -----
    Source: ONNX SequenceEmpty, version 11.
    """
    return Sequence((), "float32" if dtype is None else known_dtype(dtype))


@speaks_as("SequenceInsert-11")
def sequence_insert(seq: SequenceLike, tensor: Array, position: int | Array | None = None) -> Sequence:
    """Give a sequence with a tensor inserted before a position; both hold the same arrays.

    Parameters
    ----------
    seq : Sequence, list or tuple of arrays
    tensor : array
        Of the sequence's dtype.
    position : int or integer array of size 1, optional
        In [-n, n] for n tensors; n, the default, appends.

    Raises
    ------
    IndexError
        ``position`` is out of range or not one value.
    TypeError
        ``tensor`` is no array or of another dtype.

    Notes
    -----
    Source: ONNX SequenceInsert, version 11. (onnx.reference puts position n at the front.)
    """
    namespace(tensor, "tensor")
    return inserted(as_sequence(seq, dtype_name(tensor.dtype)), base_array(tensor), position)


@speaks_as("SequenceErase-11")
def sequence_erase(seq: SequenceLike, position: int | Array | None = None) -> Sequence:
    """Give a sequence without the tensor at a position (default: the last).

    Raises
    ------
    IndexError
        ``position`` is out of range or not one value, or the sequence is empty.
    TypeError
        ``seq`` is no sequence or ``position`` is no integer.

    Notes
    -----
    Source: ONNX SequenceErase, version 11.
    """
    return erased(as_sequence(seq), position)


@speaks_as("SequenceLength-11")
def sequence_length(seq: SequenceLike) -> Array:
    """Give the number of tensors as a 0-d int64 array, in the library and on the device of the first one.

    Raises
    ------
    TypeError
        ``seq`` is no sequence.

    Notes
    -----
    Source: ONNX SequenceLength, version 11. An empty sequence has no library; its length is a NumPy array.
    """
    return length_of(as_sequence(seq))


@speaks_as("SplitToSequence-24")
def split_to_sequence(input: Array, split: Ints | int | None = None, *, axis: int = 0, keepdims: int = 1) -> Sequence:
    """Split an array along an axis into a sequence of copies.

    Parameters
    ----------
    input : array
    split : int, 0-d or 1-D integer array, or sequence of int, optional
        A scalar is the size of every part, the last may be smaller; a list has the size of each. Default: parts of 1.
    axis : int
        Counted from the end where negative.
    keepdims : int
        Where 0 and ``split`` is not given, the parts lose the axis. Ignored where ``split`` is given, as the text says.

    Returns
    -------
    Sequence

    Raises
    ------
    ValueError
        Sizes that are negative or do not add up, a scalar below 1, or an axis out of range.
    TypeError
        ``input`` is no array, or sizes are not ints.

    Notes
    -----
    Source: ONNX SplitToSequence, version 24.
    """
    view = View.of(input, "input")
    return Sequence.holding(dense(split_items(view, split, axis, keepdims)), dtype_name(view.dtype))


@speaks_as("ConcatFromSequence-11")
def concat_from_sequence(seq: SequenceLike, *, axis: int, new_axis: int = 0) -> Array:
    """Put the tensors of a sequence side by side along an axis, or stack them on a new one.

    Parameters
    ----------
    seq : Sequence, list or tuple of arrays
        At least one, of one library, device and shape (save for ``axis`` where ``new_axis`` is 0).
    axis : int
        In [-r, r-1] for tensors of rank r, in [-r-1, r] with ``new_axis=1``.
    new_axis : int
        0 or 1.

    Returns
    -------
    array
        Fresh and C-contiguous.

    Raises
    ------
    ValueError
        An empty sequence, shapes or devices that don't match, an axis out of range.
    TypeError
        ``seq`` is no sequence, or its arrays are of several libraries or dtypes.

    Notes
    -----
    Source: ONNX ConcatFromSequence, version 11.
    """
    return dense([joined([View.of(item) for item in as_sequence(seq)], axis, new_axis)])[0]
