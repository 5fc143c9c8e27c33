"""The one decision "NumPy or kernels", for NumPy arrays, by what a copy costs with each.

A launch of the kernels costs more than a call of NumPy: some microseconds if known calls are not compiled. Apart from
that, they take less time than NumPy for short runs and gathered items. ``python -m bench tune`` shows what is chosen
beside the times of both.
"""

from collections import abc
from dataclasses import dataclass
from math import inf, prod
from operator import mul
from typing import TypeVar

from gpuslice.engine.calls import COMPILED
from gpuslice.engine.consecutive import Consecutive
from gpuslice.engine.joined import Joined, Lazy
from gpuslice.engine.plan import PIXEL_CHANNELS, VECTOR_BYTES
from gpuslice.engine.views import View, index_of
from gpuslice.libraries import NUMPY, Array


@dataclass(frozen=True)
class Costs:
    """What copies cost, in nanoseconds.

    Attributes
    ----------
    numpy_part, kernel_part : float
        Each view. What it costs a kernel includes the search for its plan.
    numpy_joined : float
        Each array that NumPy joins.
    numpy_odd_item : float
        The same of items of 3, 6 and 12 bytes.
    kernel_call : float
        Each launch.
    kernel_plan : float
        The plan of a launch, which is kept for later calls.
    numpy_run, kernel_run : float
        Each run of contiguous bytes. Kernels move long runs in vectors, so only short ones cost them anything.
    kernel_pixel : float
        Each run of three items that is shorter than a vector, and each item of 3, 6 and 12 bytes.
    numpy_byte, kernel_byte : float
        Each byte of a run.
    numpy_item, kernel_item : float
        Each item that is not in a run.
    numpy_far_item, numpy_lost_item, kernel_far_byte : float
        Each item, and each byte, of an axis with an item in every cache line, if the lines do not stay in the first
        cache. The second number is for those that do not stay in any.
    """

    numpy_part: float = 370
    numpy_joined: float = 150
    numpy_run: float = 5.5
    numpy_byte: float = 0.021
    numpy_item: float = 0.33
    numpy_odd_item: float = 2
    numpy_far_item: float = 1.3
    numpy_lost_item: float = 3
    kernel_call: float = 400
    kernel_plan: float = 40_000
    kernel_part: float = 200
    kernel_run: float = 0.9
    kernel_pixel: float = 0.7
    kernel_byte: float = 0.026
    kernel_item: float = 0.25
    kernel_far_byte: float = 0.12


COSTS = Costs() if COMPILED is not None else Costs(numpy_part=500, numpy_joined=500, kernel_call=3600, kernel_part=1100)
# A plan has to pay for itself within so many calls: each takes longer in a program than in the loop of a benchmark.
_CALLS = 50
# Copies this large are spread over threads.
_LARGE_BYTES = 1 << 22
# From here on PyTorch's own copies make up for what they cost besides; up to here, where kernels write past the caches.
_TORCH_BYTES, _TORCH_MOST_BYTES, _LONG_RUN = 1 << 18, 1 << 23, 512
# PyTorch reverses items of this size one by one.
_SLOWLY_REVERSED = 2
# So many of a large number of views are looked at; the others are taken to be like them.
_MOST_SEEN = 8
# Kernels rearrange items in registers that are up to so far apart: small ones, and those that only go backward.
_STEPS_IN_REGISTERS = 4
_LINE_BYTES = 64
_CACHE_BYTES, _CACHES_BYTES = 1 << 14, 1 << 21

T = TypeVar("T")
# Shape and byte strides.
Layout = tuple[tuple[int, ...], tuple[int, ...]]


def kernels_save(itemsize: int, layouts: abc.Sequence[Layout], count: int) -> float:
    """Return how many nanoseconds less the kernels take than NumPy for ``count`` views to or from contiguous arrays.

    It is negative if NumPy is faster, or so little slower that a plan does not pay.

    Parameters
    ----------
    itemsize : int
    layouts : sequence of (tuple of int, tuple of int)
        Shape and byte strides of some of the views, at least one.
    count : int
        How many views there are.
    """
    numpy_time = kernel_time = 0.0
    size = 0
    for shape, strides in layouts:
        if _is_scattered(itemsize, shape, strides):
            return -inf
        items = prod(shape)
        by_numpy, by_kernels = _times(itemsize, items, shape, strides)
        numpy_time += by_numpy
        kernel_time += by_kernels
        size += items * itemsize
    scale = count / len(layouts)
    if size * scale >= _LARGE_BYTES:
        return inf
    kernel_time = kernel_time * scale + count * COSTS.kernel_part + COSTS.kernel_call
    return numpy_time * scale + count * COSTS.numpy_part - kernel_time - COSTS.kernel_plan / _CALLS


def _times(itemsize: int, items: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[float, float]:
    """Return what a view costs NumPy and the kernels, besides what each view and each launch costs."""
    size = items * itemsize
    run = _run_bytes(itemsize, shape, strides)
    if run > itemsize or items <= 1:
        short = COSTS.kernel_pixel if run == PIXEL_CHANNELS * itemsize else COSTS.kernel_run
        if run >= VECTOR_BYTES:
            short = 0
        return size / run * COSTS.numpy_run + size * COSTS.numpy_byte, size / run * short + size * COSTS.kernel_byte
    if itemsize % PIXEL_CHANNELS == 0 and itemsize < VECTOR_BYTES:
        return items * COSTS.numpy_odd_item, items * COSTS.kernel_pixel + size * COSTS.kernel_byte
    # Of the innermost axis of more than one item: NumPy leaves out the others, too.
    axes = zip(reversed(shape), reversed(strides), strict=True)
    inner, step = next((count, abs(stride)) for count, stride in axes if count > 1)
    if step >= _LINE_BYTES > itemsize and inner * _LINE_BYTES >= _CACHE_BYTES:
        far_item = COSTS.numpy_far_item if size < _CACHES_BYTES else COSTS.numpy_lost_item
        return items * far_item, size * COSTS.kernel_far_byte
    gathered = step > itemsize * (_STEPS_IN_REGISTERS if itemsize <= 2 else 1)
    by_numpy = items * COSTS.numpy_item + items / inner * COSTS.numpy_run
    return by_numpy, items * COSTS.kernel_item if gathered else size * COSTS.kernel_byte


def _is_scattered(itemsize: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether items that are close together lie far apart in the result, and no kernel moves them in tiles.

    NumPy reads what is close together first. The kernels write in order, and a line that they read is lost before its
    next item is wanted. An example is an image (height, width, 3) as (3, width, height).
    """
    if not shape or abs(strides[-1]) < _LINE_BYTES or shape[-1] * _LINE_BYTES < _CACHE_BYTES:
        return False
    outer = list(zip(shape[:-1], map(abs, strides[:-1]), strict=True))
    if any(stride == itemsize and count * itemsize >= VECTOR_BYTES for count, stride in outer):
        return False  # tiles
    return any(itemsize < stride < _LINE_BYTES and count * stride >= _LINE_BYTES for count, stride in outer)


def _run_bytes(itemsize: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Return how many bytes lie one behind the other, from each item that begins such a run."""
    run = itemsize
    for count, stride in zip(reversed(shape), reversed(strides), strict=True):
        if count > 1:
            if stride != run:
                break
            run *= count
    return max(1, run)


def torch_is_faster(itemsize: int, layouts: abc.Sequence[Layout], *, threads: int, written: bool) -> bool:
    """Return whether PyTorch copies views of its tensors faster than NumPy and the kernels do.

    It does if they are of medium size and have long runs of contiguous items, which may go backward if the result is
    new. PyTorch uses threads for less than the kernels do. With one thread it is faster only if a run goes backward.

    Parameters
    ----------
    itemsize : int
    layouts : sequence of (tuple of int, tuple of int)
        Shape and byte strides of each view.
    threads : int
        How many threads PyTorch uses; 0 if it does not copy the dtype.
    written : bool
        Whether there are outputs: PyTorch reverses to new arrays only.
    """
    goes_backward = False
    for shape, strides in layouts:
        if min(strides, default=0) >= 0:
            run = _run_bytes(itemsize, shape, strides)
        elif written or not shape or (itemsize == _SLOWLY_REVERSED and strides[-1] < 0):
            return False
        else:
            goes_backward = True
            run = shape[-1] * itemsize if abs(strides[-1]) == itemsize else 0
        if run < _LONG_RUN:
            return False
    if threads < (1 if goes_backward else 2):
        return False
    return _TORCH_BYTES <= sum(prod(shape) for shape, _ in layouts) * itemsize < _TORCH_MOST_BYTES


def torch_joins_faster(value: Joined, *, threads: int) -> bool:
    """Return whether PyTorch joins tensors, here as NumPy arrays, faster than NumPy does: see `torch_is_faster`."""
    itemsize = value.dtype.itemsize
    inner, size = prod(value.shape[value.axis + 1 :]) * itemsize, prod(value.shape) * itemsize
    if threads < 2 or not _TORCH_BYTES <= size < _TORCH_MOST_BYTES:
        return False
    # The result has the memory format of the arrays.
    arrays = value.arrays or ()
    return all(part.flags.c_contiguous and part.shape[value.axis] * inner >= _LONG_RUN for part in arrays)


def some(values: abc.Sequence[T]) -> abc.Sequence[T]:
    """Return those of many values that are looked at, at most eight."""
    return values if len(values) <= _MOST_SEEN else values[:: -(-len(values) // _MOST_SEEN)]


def small_numpy_arrays(views: abc.Sequence[Lazy]) -> abc.Iterable[Array] | None:
    """Return views as NumPy arrays if NumPy copies them faster than the kernels do; else None, as for any Joined."""
    seen = some(views)
    for view in seen:
        if view.library is not NUMPY or type(view) is Joined:
            return None
    if not seen or kernels_save(seen[0].dtype.itemsize, list(map(_layout, seen)), len(views)) >= 0:  # type: ignore[arg-type]
        return None
    if isinstance(views, Consecutive):
        return views.arrays()
    return _numpy_arrays(views)


def are_small(arrays: abc.Sequence[Array]) -> bool:
    """Return whether NumPy writes to NumPy arrays faster than the kernels do; contiguous ones do not matter."""
    seen = some(arrays)
    if all(array.flags.c_contiguous for array in seen):
        return True
    return kernels_save(seen[0].dtype.itemsize, [(array.shape, array.strides) for array in seen], len(arrays)) < 0


def small_numpy_parts(value: Joined) -> abc.Sequence[Array] | None:
    """Return the parts of a joined value as NumPy arrays if NumPy joins them faster than the kernels do; else None."""
    if value.library is not NUMPY or kernels_save_of_join(value) >= 0:
        return None
    if value.arrays is not None:
        return value.arrays
    return None if any(type(part) is Joined for part in value.parts) else _numpy_arrays(value.parts)


def kernels_save_of_join(value: Joined) -> float:
    """Return what `kernels_save` does for NumPy arrays that are joined."""
    # In the result each part is runs along the joined axis and those behind it.
    itemsize, inner = value.dtype.itemsize, max(1, prod(value.shape[value.axis :]))
    outer = prod(value.shape) // inner
    part = max(1, inner // value.count)
    # The axis of single items is left out: it is no run.
    layout = ((outer, part), (inner * itemsize, itemsize)) if part > 1 else ((outer,), (inner * itemsize,))
    return kernels_save(itemsize, [layout], value.count) - value.count * (COSTS.numpy_part - COSTS.numpy_joined)


def _numpy_arrays(views: abc.Sequence[Lazy]) -> list[Array] | None:
    """Return views as arrays; None if one is not NumPy's."""
    arrays = []
    for view in views:
        if type(view) is not View or view.library is not NUMPY:
            return None
        arrays.append(view.array if view.is_whole else view.array[index_of(view.region)])
    return arrays


def _layout(view: View) -> Layout:
    return view.region.shape, tuple(map(mul, view.array.strides, view.region.step))
