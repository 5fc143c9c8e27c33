"""Slice, DynamicSlice, Split and contiguous copies of arrays of any library, as the operators' newest versions say."""

from collections.abc import Sequence
from typing import overload

import array_api_compat

from gpuslice.arrays import Array, integer
from gpuslice.deferred import Ints, sliced, split_parts
from gpuslice.engine import View
from gpuslice.errors import speaks_as
from gpuslice.results import deliver, deliver_one
from gpuslice.sequence import Sequence as SequenceOfArrays

# Each allocation from CuPy's pool costs about as much as a launch, so many parts are cheaper from one.
_BLOCK_ABOVE = 8


@speaks_as("Slice-13")
def slice(
    data: Array,
    starts: Ints,
    ends: Ints,
    axes: Ints | None = None,
    steps: Ints | None = None,
    *,
    copy: bool | None = True,
    out: Array | None = None,
) -> Array:
    """Take a slice along some axes, forward or backward.

    Parameters
    ----------
    data : array of shape (d0, ...)
        Of any dtype and rank, 0 included.
    starts, ends : sequence of int or 1-D integer array
        One value an axis sliced, counted from the end where negative, clamped to the axis. Arrays on a device cost a
        synchronising read, here and in every argument like these.
    axes : sequence of int or 1-D integer array, optional
        Default: the first ``len(starts)`` axes.
    steps : sequence of int or 1-D integer array, optional
        Default: 1. A negative step goes backward; to reach element 0 with it, end at or below ``-d - 1``.
    copy : bool or None
        * True (default): a fresh C-contiguous array.
        * None: a view where the library has one, else a copy.
        * False: a view or ValueError.
    out : array, optional
        Written in place and returned. Of the result's shape, dtype and device; it may be strided.

    Returns
    -------
    array
        In the library, dtype and device of ``data``.

    Raises
    ------
    ValueError
        A step of 0, a repeated axis or one out of range, arguments of different lengths, a bound that is not 1-D, or
        ``copy`` and ``out`` that can't be met.
    TypeError
        ``data`` is no array, bounds are not ints, or ``out`` is of another library or dtype.

    Notes
    -----
    Source: ONNX Slice, version 13; the same rules serve versions 1, 10 and 11. Two cases differ from
    NumPy's ``data[start:end:step]``: with a negative step a start below ``-d`` is element 0, and ends are clamped
    before they are used, so an end of ``INT_MAX`` gives nothing.

    Examples
    --------
    >>> import numpy as np, gpuslice as gs
    >>> gs.slice(np.arange(6), [-1], [-99], steps=[-2])
    array([5, 3, 1])
    """
    return deliver_one(sliced(View.of(data), starts, ends, axes, steps), copy, out)


@speaks_as("DynamicSlice-1")
def dynamic_slice(
    data: Array,
    starts: Ints,
    ends: Ints,
    axes: Ints | None = None,
    *,
    copy: bool | None = True,
    out: Array | None = None,
) -> Array:
    """Take a forward slice along some axes (ONNX's operator, not JAX's function of this name).

    Parameters
    ----------
    data, starts, ends, axes, copy, out
        As for `slice`.

    Returns
    -------
    array

    Raises
    ------
    ValueError, TypeError
        As for `slice`.

    Notes
    -----
    Source: ONNX DynamicSlice, version 1 (experimental, removed when Slice-10 came).
    """
    return deliver_one(sliced(View.of(data), starts, ends, axes), copy, out)


@speaks_as("Split-18")
def split(
    input: Array,
    split: Ints | None = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
    copy: bool | None = True,
    out: Sequence[Array] | None = None,
    one_block: bool | None = None,
) -> tuple[Array, ...]:
    """Split an array into consecutive parts along an axis.

    Parameters
    ----------
    input : array of shape (d0, ...)
    split : sequence of int or 1-D integer array, optional
        Sizes of the parts, zeros allowed, adding up to the axis.
    axis : int
        Counted from the end where negative.
    num_outputs : int, optional
        Instead of ``split``: that many parts alike, the last one smaller where the axis is no multiple.
    copy : bool or None
        As for `slice`.
    out : list or tuple of arrays, optional
        One a part, written in place and returned.
    one_block : bool, optional
        Take all parts from one allocation, which lives as long as the last of them. Default (None): above 8 parts on
        CUDA.

    Returns
    -------
    tuple of array

    Raises
    ------
    ValueError
        Both or neither of ``split`` and ``num_outputs``, sizes that are negative, none, or do not add up, a last part
        that would be negative, an axis out of range, or ``copy``, ``out`` and ``one_block`` that can't be met.
    TypeError
        ``input`` is no array, or sizes are not ints.

    Notes
    -----
    Source: ONNX Split, version 18.

    Examples
    --------
    >>> import numpy as np, gpuslice as gs
    >>> gs.split(np.arange(5), num_outputs=2)
    (array([0, 1, 2]), array([3, 4]))
    """
    count = None if num_outputs is None else integer(num_outputs, "num_outputs")
    views = split_parts(View.of(input, "input"), split, integer(axis, "axis"), count)
    if one_block is None:
        one_block = len(views) > _BLOCK_ABOVE and copy is True and out is None
        one_block = one_block and array_api_compat.is_cupy_namespace(views[0].xp)
    return tuple(deliver(views, copy, out, one_block=one_block))


@overload
def contiguous(views: list[Array] | tuple[Array, ...], out: Sequence[Array] | None = None) -> tuple[Array, ...]: ...
@overload
def contiguous(views: Array, out: Array | None = None) -> Array: ...
@speaks_as("contiguous")
def contiguous(views: Array, out: Array | None = None) -> Array:
    """Make dense copies of strided views, all in one launch.

    Parameters
    ----------
    views : array, or list or tuple of arrays
        Arrays of any strides, such as ``x[::-1, 2:9:3]`` or ``y.T``.
    out : array, or list or tuple of arrays, optional
        As many arrays to write to instead of fresh ones.

    Returns
    -------
    array or tuple of array
        C-contiguous; an array for an array, a tuple for a list or tuple.

    Raises
    ------
    TypeError, ValueError
        Something that is no array, or an ``out`` that does not fit.

    Examples
    --------
    >>> import numpy as np, gpuslice as gs
    >>> x = np.arange(6).reshape(2, 3)
    >>> a, b = gs.contiguous([x[::-1], x.T])
    """
    if isinstance(views, (list, tuple, SequenceOfArrays)):
        return tuple(deliver([View.of(view, "views") for view in views], True, out))
    return deliver_one(View.of(views, "views"), True, out)
