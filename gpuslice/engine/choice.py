"""The one decision "NumPy or kernels". For small NumPy arrays a look-up of the plan takes longer than NumPy."""

from collections import abc
from math import prod

from gpuslice.engine.consecutive import Consecutive
from gpuslice.engine.joined import Joined, Lazy
from gpuslice.engine.views import index_of, new_index_of
from gpuslice.libraries import NUMPY, Array
from gpuslice.rules import Region

SMALL_BYTES = 1 << 15
# A plan takes longer with each part.
PARTS_IN_SMALL = 4
_FEW_VIEWS = 8
# NumPy copies contiguous bytes at the speed of memcpy, so they count less.
_CONTIGUOUS_WEIGHT = 1 / 8


def small_numpy_arrays(views: abc.Sequence[Lazy]) -> abc.Iterable[Array] | None:
    """Return views as NumPy arrays if NumPy copies them faster than the kernels do; else None, as for any Joined."""
    limit = _limit(len(views))
    if isinstance(views, Consecutive):
        size = prod(views.view.shape) * views.view.dtype.itemsize if views.view.library is NUMPY else limit
        return views.arrays() if _weight(size, is_contiguous=views.are_contiguous) < limit else None
    index = index_of if len(views) <= _FEW_VIEWS else new_index_of
    arrays, weight = [], 0.0
    for view in views:
        if view.library is not NUMPY or type(view) is Joined:
            return None
        array = view.array if view.is_whole else view.array[index(view.region)]  # type: ignore[union-attr]
        weight += array.nbytes * _CONTIGUOUS_WEIGHT if array.flags.c_contiguous else array.nbytes
        if weight >= limit:
            return None
        arrays.append(array)
    return arrays


def numpy_is_faster(strides: tuple[int, ...], itemsize: int, regions: abc.Sequence[Region]) -> bool:
    """Return whether NumPy copies regions of a NumPy array faster than the kernels do, to contiguous arrays."""
    weight = 0.0
    for region in regions:
        weight += _weight(prod(region.shape) * itemsize, is_contiguous=_is_run(strides, itemsize, region))
    return weight < _limit(len(regions))


def _is_run(strides: tuple[int, ...], itemsize: int, region: Region) -> bool:
    """Return whether the items of a region lie one behind the other."""
    expected = itemsize
    for stride, step, count in zip(reversed(strides), reversed(region.step), reversed(region.shape), strict=True):
        if count > 1:
            if stride * step != expected:
                return False
            expected *= count
    return True


def are_small(arrays: abc.Sequence[Array]) -> bool:
    """Return whether NumPy arrays are small enough for NumPy's own copy."""
    weight = 0.0
    for array in arrays:
        weight += array.nbytes * _CONTIGUOUS_WEIGHT if array.flags.c_contiguous else array.nbytes
    return weight < _limit(len(arrays))


def small_numpy_parts(value: Joined) -> abc.Sequence[Array] | None:
    """Return the parts of a joined value as NumPy arrays if NumPy joins them faster than the kernels do; else None."""
    if value.library is not NUMPY:
        return None
    are_runs = prod(value.shape[: value.axis]) <= 1  # of the result
    if _weight(prod(value.shape) * value.dtype.itemsize, is_contiguous=are_runs) >= _limit(value.count):
        return None
    if value.arrays is not None:
        return value.arrays
    if any(type(part) is Joined for part in value.parts):
        return None
    return [part.array[new_index_of(part.region)] for part in value.parts]  # type: ignore[union-attr]


def _weight(size: int, *, is_contiguous: bool) -> float:
    return size * _CONTIGUOUS_WEIGHT if is_contiguous else size


def _limit(count: int) -> int:
    return SMALL_BYTES * max(PARTS_IN_SMALL, count) // PARTS_IN_SMALL
