"""Copies that are prepared once, for all arrays of one library, shape, strides and dtype. A call is then a look-up."""

from collections import abc
from math import inf
from typing import Protocol

import numpy as np

from gpuslice.caches import bounded_cache
from gpuslice.dtypes import DType
from gpuslice.engine import choice, host_library
from gpuslice.engine.fields import has_gaps
from gpuslice.engine.host import HOST_EXECUTOR
from gpuslice.engine.joined import Lazy
from gpuslice.engine.kernel_executor import KernelExecutor, byte_offset_and_strides
from gpuslice.engine.prepared_regions import ByKernels, ByNumPy
from gpuslice.engine.views import View
from gpuslice.libraries import Address, Array
from gpuslice.rules import Region

# Which executor copies arrays of exactly this type. CUDA's enters itself when it is first needed.
EXECUTORS: dict[type, KernelExecutor] = {np.ndarray: HOST_EXECUTOR}

# What prepares regions of arrays of exactly this type, if none of those executors does. It enters itself, too.
PREPARERS: "dict[type, abc.Callable[[DType, tuple[Region, ...]], Prepared]]" = {}

_MOST_REGIONS = 1200


class Prepared(Protocol):
    """Regions, and what copies them from any array of one kind. `ByNumPy` says what the methods do."""

    @property
    def shapes(self) -> abc.Sequence[tuple[int, ...]]:
        """The shapes of the outputs that may be written; none are if there are not as many as regions."""

    def fresh(self, array: Array, *, one_block: bool = False) -> list[Array]: ...
    def fresh_one(self, array: Array) -> Array: ...
    def into_one(self, array: Array, target: Array) -> None: ...
    def into(self, array: Array, targets: abc.Sequence[Array]) -> None: ...


def prepared_for(
    array: Array, values: abc.Sequence[Lazy], *, keep: bool = True, dropped: int | None = None
) -> Prepared | None:
    """Return how values that are regions of one array are copied; None if they are others, many or unusual.

    Parameters
    ----------
    keep : bool
        False for a caller that keeps it.
    dropped : int, optional
        An axis of one item in each region, which the copies do not have.
    """
    executor, prepare = EXECUTORS.get(type(array)), PREPARERS.get(type(array))
    if not 0 < len(values) <= _MOST_REGIONS:
        return None
    if prepare is None and (executor is None or not executor.runs_on(array)):
        return None
    regions = []
    for value in values:
        if type(value) is not View or value.array is not array:
            return None
        regions.append(value.region)
    if executor is None:
        return prepare(array.dtype, tuple(regions)) if prepare and dropped is None else None
    find = _kept if keep else _prepare
    return find(executor, values[0].library.address, array.strides, array.dtype, tuple(regions), dropped)


def _prepare(
    executor: KernelExecutor,
    address: Address | None,
    strides: tuple[int, ...],
    dtype: DType,
    regions: tuple[Region, ...],
    dropped: int | None,
) -> ByNumPy | ByKernels | None:
    if has_gaps(dtype):
        return None
    moves_bits = not dtype.hasobject and dtype.itemsize > 0
    if executor is HOST_EXECUTOR and (not moves_bits or host_library.LIBRARY is None):
        return ByNumPy(regions, dropped)
    if not moves_bits or address is None:
        return None
    places = [byte_offset_and_strides(region, strides) for region in regions]
    saved = inf
    if executor is HOST_EXECUTOR:
        layouts = [(regions[i].shape, places[i][1]) for i in choice.some(range(len(regions)))]
        saved = choice.kernels_save(dtype.itemsize, layouts, len(regions))
        if saved < 0:
            return ByNumPy(regions, dropped)
    return ByKernels(executor, address, dtype, regions, places, dropped, saved < choice.COSTS.kernel_plan)


_kept = bounded_cache(6)(_prepare)
