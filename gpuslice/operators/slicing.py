"""Slice, DynamicSlice, Split and contiguous copies of arrays of any library, by the operators' newest versions."""

from collections import abc
from typing import Any, overload

import numpy as np

from gpuslice.arguments import Ints
from gpuslice.delivery import deliver, deliver_one
from gpuslice.engine import BLOCK_ABOVE, View
from gpuslice.errors import describe_no_array, prefixes_errors
from gpuslice.lazy.slicing import slice_10, split_18
from gpuslice.libraries import ArrayT, is_array
from gpuslice.operators.known import KnownCalls, key_of, key_of_split
from gpuslice.sequence import Sequence, SequenceLike
from gpuslice.versions import newest

_slices = KnownCalls()
_splits = KnownCalls()


def slice(
    data: ArrayT,
    starts: Ints,
    ends: Ints,
    axes: Ints | None = None,
    steps: Ints | None = None,
    *,
    copy: bool | None = True,
    out: ArrayT | None = None,
) -> ArrayT:
    """Slice an array along some axes, with positive or negative steps.

    Parameters
    ----------
    data : array of shape (d0, ...)
        Any dtype and rank, including rank 0.
    starts, ends : sequence of int or 1-D integer array
        One value per sliced axis. Negative values count from the end; values past an end of the axis are clamped.
        Reading an array on a device waits for the device. This holds for all arguments of this kind.
    axes : sequence of int or 1-D integer array, optional
        Default: the first ``len(starts)`` axes.
    steps : sequence of int or 1-D integer array, optional
        Default: 1. With a negative step, an end of ``-d - 1`` or less (``d`` is the length of the axis) includes
        element 0.
    copy : bool or None
        * True (default): return a fresh C-contiguous array.
        * None: return a view if the library has one, else a copy.
        * False: return a view or raise ValueError.
    out : array, optional
        Written in place and returned. It has the result's shape, dtype and device. It may be strided.

    Returns
    -------
    array
        In the library, dtype and device of ``data``.

    Raises
    ------
    ValueError
        A step is 0, an axis is repeated or out of range, arguments have different lengths, a bound is not 1-D, or
        ``copy`` and ``out`` cannot be satisfied.
    TypeError
        ``data`` is not an array, bounds are not ints, or ``out`` has another library or dtype.

    Notes
    -----
    Source: ONNX Slice, version 13. The same rules serve versions 1, 10 and 11. Two cases differ from NumPy's
    ``data[start:end:step]``: with a negative step, a start below ``-d`` means element 0; and ends are clamped before
    they are used, so that a negative step with an end of ``INT_MAX`` selects nothing.

    Examples
    --------
    >>> import numpy as np, gpuslice as gs
    >>> gs.slice(np.arange(6), [-1], [-99], steps=[-2])
    array([5, 3, 1])
    """
    key = key_of(data, starts, ends, axes, steps) if copy is True else None
    array: ArrayT | None = _slices.deliver_one(key, data, out)
    return _slice(data, starts, ends, axes, steps, copy, out, key) if array is None else array


@prefixes_errors(newest("DynamicSlice"))
def dynamic_slice(
    data: ArrayT,
    starts: Ints,
    ends: Ints,
    axes: Ints | None = None,
    *,
    copy: bool | None = True,
    out: ArrayT | None = None,
) -> ArrayT:
    """Slice an array along some axes with steps of 1 (ONNX's operator, not JAX's function of this name).

    Parameters
    ----------
    data : array of shape (d0, ...)
    starts, ends : sequence of int or 1-D integer array
    axes : sequence of int or 1-D integer array, optional
    copy : bool or None
    out : array, optional
        All as for `slice`.

    Returns
    -------
    array
        In the library, dtype and device of ``data``.

    Raises
    ------
    ValueError, TypeError
        As for `slice`.

    Notes
    -----
    Source: ONNX DynamicSlice, version 1 (experimental; Slice-10 replaced it).
    """
    array: ArrayT = deliver_one(slice_10(data, starts, ends, axes)[0], copy, out)
    return array


def split(
    input: ArrayT,
    split: Ints | None = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
    copy: bool | None = True,
    out: abc.Sequence[ArrayT] | None = None,
    one_block: bool | None = None,
) -> tuple[ArrayT, ...]:
    """Split an array into consecutive parts along an axis.

    Parameters
    ----------
    input : array of shape (d0, ...)
    split : sequence of int or 1-D integer array, optional
        Sizes of the parts. Zeros are allowed; the sum is the length of the axis.
    axis : int
        Negative values count from the end.
    num_outputs : int, optional
        In place of ``split``: the number of equal parts. The last part is smaller if the axis is not a multiple.
    copy : bool or None
        As for `slice`.
    out : list or tuple of arrays, optional
        One per part, written in place and returned.
    one_block : bool, optional
        Take all parts from one allocation, which lives as long as any of them. Default (None): for more than 8 parts on
        CUDA.

    Returns
    -------
    tuple of array

    Raises
    ------
    ValueError
        Both or neither of ``split`` and ``num_outputs`` are given; sizes are negative, missing, or do not add up; the
        last part would be negative; the axis is out of range; or ``copy``, ``out`` and ``one_block`` cannot be
        satisfied.
    TypeError
        ``input`` is not an array, sizes are not ints, or an array of ``out`` has another library or dtype.

    Notes
    -----
    Source: ONNX Split, version 18.

    Examples
    --------
    >>> import numpy as np, gpuslice as gs
    >>> gs.split(np.arange(5), num_outputs=2)
    (array([0, 1, 2]), array([3, 4]))
    """
    key = key_of_split(input, split, axis, num_outputs) if copy is True else None
    if one_block is None or one_block is False:
        parts = _splits.deliver(key, input, out, one_block=one_block is None)
        if parts is not None:
            return tuple(parts)
    return _split(input, split, axis, num_outputs, copy, out, one_block, key)


@overload
def contiguous(views: SequenceLike[ArrayT], out: abc.Sequence[ArrayT] | None = None) -> tuple[ArrayT, ...]: ...
@overload
def contiguous(views: ArrayT, out: ArrayT | None = None) -> ArrayT: ...
@prefixes_errors("contiguous")
def contiguous(views: Any, out: Any = None) -> Any:
    """Return dense copies of strided views, all made in one launch per kind of view.

    Parameters
    ----------
    views : array, or list or tuple of arrays
        Arrays of any strides, such as ``x[::-1, 2:9:3]`` or ``y.T``.
    out : array, or list or tuple of arrays, optional
        One per view, written in place and returned.

    Returns
    -------
    array or tuple of array
        C-contiguous; an array for an array, a tuple for a list or tuple.

    Raises
    ------
    TypeError
        A view is not an array, or ``out`` has another library or dtype.
    ValueError
        ``out`` does not fit: another length, shape or device, read-only, or overlapping.

    Examples
    --------
    >>> import numpy as np, gpuslice as gs
    >>> x = np.arange(6).reshape(2, 3)
    >>> a, b = gs.contiguous([x[::-1], x.T])
    """
    if isinstance(views, (list, tuple, Sequence)):
        # To name each argument takes longer than to make a view of it.
        of = [
            View.of(view) if type(view) is np.ndarray else View.of(view, f"views[{i}]") for i, view in enumerate(views)
        ]
        return tuple(deliver(of, True, out))
    return _contiguous_one(views, out)


# The functions above try what is known of a call, in which no argument can be wrong. These do a call in full.


@prefixes_errors(newest("Slice"))
def _slice(
    data: Any, starts: Ints, ends: Ints, axes: Ints | None, steps: Ints | None, copy: bool | None, out: Any, key: Any
) -> Any:
    views = slice_10(data, starts, ends, axes, steps)
    _slices.learn(key, data, views)
    array = _slices.deliver_one(key, data, out)
    return deliver_one(views[0], copy, out) if array is None else array


@prefixes_errors(newest("Split"))
def _split(
    input: Any,
    split: Ints | None,
    axis: int,
    num_outputs: int | None,
    copy: bool | None,
    out: Any,
    one_block: bool | None,
    key: Any,
) -> tuple[Any, ...]:
    views = split_18(input, split, axis=axis, num_outputs=num_outputs)
    if one_block is None or one_block is False:
        _splits.learn(key, input, views)
        parts = _splits.deliver(key, input, out, one_block=one_block is None)
        if parts is not None:
            return tuple(parts)
    if one_block is None:
        one_block = len(views) > BLOCK_ABOVE and copy is True and out is None and views[0].library.executor == "cuda"
    return tuple(deliver(views, copy, out, one_block=one_block))


def _contiguous_one(view: Any, out: Any) -> Any:
    key = key_of(view, (), (), None, None)  # a slice without bounds
    array = _slices.deliver_one(key, view, out)
    if array is None:
        if not is_array(view):
            raise TypeError(f"views must be an array, or a list or tuple of arrays; got {describe_no_array(view)}")
        whole = View.of(view, "views")
        _slices.learn(key, view, [whole])
        array = _slices.deliver_one(key, view, out)
        if array is None:
            array = deliver_one(whole, True, out)
    return array
