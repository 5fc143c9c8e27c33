"""From views to what ``copy=`` and ``out=`` ask for: dense arrays, views, or the caller's own arrays."""

from collections.abc import Sequence
from types import ModuleType

import array_api_compat
import numpy as np
from numpy.lib.array_utils import byte_bounds

from gpuslice import engine
from gpuslice.arrays import NUMPY, Array, address, device, is_immutable, itemsize, namespace
from gpuslice.engine import View

# np.shares_memory answers exactly in time that may grow exponentially; past this much work two strided arrays whose
# bounds overlap count as overlapping.
_OVERLAP_WORK = 10_000


def deliver(
    views: Sequence[View], copy: bool | None, outs: Sequence[Array] | None = None, *, one_block: bool = False
) -> list[Array]:
    """Give one array a view, as ``copy`` and ``outs`` ask.

    Raises
    ------
    ValueError
        ``copy`` is not True, False or None; ``copy=False`` where the library has no such view; ``outs`` or
        ``one_block`` with ``copy`` other than True or with each other; an out of another shape or device, not
        writable, or overlapping an input or another out.
    TypeError
        An out of another library or dtype, or immutable.
    """
    if one_block is not True and one_block is not False:
        raise ValueError(f"one_block must be True, False or None; got {one_block!r}")
    if copy is True and outs is None and not one_block:
        return engine.dense(views)
    if copy is not True and copy is not False and copy is not None:
        raise ValueError(f"copy must be True, False or None; got {copy!r}")
    if outs is not None or one_block:
        name = "out" if outs is not None else "one_block"
        if copy is not True:
            raise ValueError(f"{name} needs copy=True; got copy={copy}")
        if outs is not None and one_block:
            raise ValueError("one_block allocates the outputs itself; it cannot be combined with out")
    if outs is not None:
        _check_outs(views, outs)
        engine.copy_into(views, outs)
        return list(outs)
    if copy is True:
        return engine.dense_in_one_block(views)
    if copy is False and not all(map(engine.gives_views, views)):
        raise ValueError(f"copy=False, but {_library(views[0].xp)} cannot give this result as a view")
    return [engine.read(view) for view in views]


def deliver_one(view: View, copy: bool | None, out: Array | None = None) -> Array:
    """Give one view as ``copy`` and ``out`` ask; see `deliver`."""
    return deliver([view], copy, None if out is None else [out])[0]


def _check_outs(views: Sequence[View], outs: Sequence[Array]) -> None:
    if not isinstance(outs, (list, tuple)):
        raise TypeError(f"out must be a list or tuple of arrays, one an output; got {type(outs).__name__}")
    if len(outs) != len(views):
        raise ValueError(f"out must hold {len(views)} arrays, one an output; got {len(outs)}")
    for view, out in zip(views, outs, strict=True):
        _check_out(view, out)
    inputs = list({id(view.array): view.array for view in views}.values())
    if not _lie_apart([*inputs, *outs]) and _any_overlap(inputs, outs):
        raise ValueError("out must not overlap an input, nor hold arrays that overlap each other")


def _check_out(view: View, out: Array) -> None:
    if (
        type(out) is np.ndarray
        and view.xp is NUMPY
        and out.dtype == view.dtype
        and out.shape == view.region.shape
        and out.flags.writeable
        and 0 not in out.strides
    ):
        return  # as nearly all are
    xp = namespace(out, "out")
    if xp is not view.xp:
        raise TypeError(f"out must be an array of {_library(view.xp)}; got one of {_library(xp)}")
    if is_immutable(xp):
        raise TypeError(f"out cannot be written: arrays of {_library(xp)} are immutable")
    if isinstance(out, np.generic) or (isinstance(out, np.ndarray) and not out.flags.writeable):
        raise ValueError("out must be writable; got a read-only array")
    if isinstance(out, np.ndarray) and 0 in out.strides and out.size and _repeats(out):
        raise ValueError("out must not hold one item in several places; got an array with a stride of 0")
    if out.dtype != view.dtype:
        raise TypeError(f"out must be of dtype {view.dtype}; got {out.dtype}")
    if tuple(out.shape) != view.shape:
        raise ValueError(f"out must have shape {view.shape}; got {tuple(out.shape)}")
    if device(out) != view.device:
        raise ValueError(f"out must be on {view.device}; got {device(out)}")


def _repeats(out: Array) -> bool:
    return any(n > 1 and step == 0 for n, step in zip(out.shape, out.strides, strict=True))


def _lie_apart(arrays: Sequence[Array]) -> bool:
    """Tell whether no array begins before another ends."""
    end = 0
    for bounds in sorted([_bounds(array) for array in arrays if 0 not in array.shape]):
        if bounds[0] < end:
            return False
        end = bounds[1]
    return True


def _any_overlap(read: Sequence[Array], written: Sequence[Array]) -> bool:
    """Tell whether arrays that are written share memory with each other or with those that are read."""
    marked = [(array, False) for array in read] + [(array, True) for array in written]
    spans = [(*_bounds(array), writes, array) for array, writes in marked if 0 not in array.shape]
    open_spans: list[tuple[int, int, bool, Array]] = []
    for span in sorted(spans, key=lambda span: span[:2]):
        open_spans = [other for other in open_spans if other[1] > span[0]]
        if any((span[2] or other[2]) and _overlap(_addresses(span[3]), _addresses(other[3])) for other in open_spans):
            return True
        open_spans.append(span)
    return False


def _bounds(array: Array) -> tuple[int, int]:
    """Give the first address of an array and the one after its last."""
    if isinstance(array, np.ndarray) and array.flags.c_contiguous:
        start = address(array)
        return start, start + array.nbytes
    return byte_bounds(_addresses(array))


def _overlap(left: Array, right: Array) -> bool:
    """Tell whether two NumPy arrays share memory, or may where finding out takes too long."""
    try:
        return np.shares_memory(left, right, max_work=_OVERLAP_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


class _Addresses:
    """Says where an array's items are, so that NumPy can compare addresses of memory that it must not read."""

    def __init__(self, pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> None:
        kind = {"version": 3, "typestr": f"|V{itemsize}", "data": (pointer, True)}
        self.__array_interface__ = kind | {"shape": shape, "strides": strides}


def _addresses(array: Array) -> Array:
    """Give a NumPy array of the same addresses. CuPy's own shares_memory sorts them on the device."""
    if isinstance(array, np.ndarray):
        return array
    size, shape = itemsize(array), tuple(array.shape)
    if array_api_compat.is_cupy_array(array):
        return np.asarray(_Addresses(array.data.ptr, shape, array.strides, size))
    if array_api_compat.is_torch_array(array):
        return np.asarray(_Addresses(array.data_ptr(), shape, tuple(step * size for step in array.stride()), size))
    return np.from_dlpack(array)


def _library(xp: ModuleType) -> str:
    return xp.__name__.removeprefix("array_api_compat.")
