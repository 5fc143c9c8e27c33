"""Joins that are prepared once, for all NumPy arrays of the same shapes, strides and dtypes: a call is a look-up."""

from collections import abc
from functools import partial
from itertools import accumulate
from typing import Protocol

import numpy as np

from gpuslice.dtypes import DType
from gpuslice.engine import choice, host_library
from gpuslice.engine.calls import COMPILED
from gpuslice.engine.fields import has_gaps
from gpuslice.engine.host import HOST_EXECUTOR
from gpuslice.engine.joined import Joined
from gpuslice.engine.kernel_executor import MOST_PLANS, Geometry, Plan, Runner, places_of, shifted
from gpuslice.engine.plan import VECTOR_BYTES
from gpuslice.engine.prepared_regions import contiguous_strides
from gpuslice.libraries import NUMPY, Array, address_of_numpy

_BYTES_PER_PLAN, _BYTES_PER_PART, _BYTES_PER_AXIS = 2048, 512, 96
_addresses_of = partial(map, address_of_numpy) if COMPILED is None else COMPILED.addresses_of


class PreparedJoin(Protocol):
    """Arrays side by side, and what copies them. `JoinByHost` says what the methods do."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""

    def fresh(self, arrays: abc.Sequence[Array]) -> Array: ...
    def into(self, arrays: abc.Sequence[Array], target: Array) -> None: ...


class JoinByHost:
    """NumPy arrays side by side in a C-contiguous one.

    Parameters
    ----------
    joined : Joined
        Of whole NumPy arrays that have the joined axis.
    new_axis : bool
        Whether the arrays of a call do not have it yet.
    """

    __slots__ = (
        "_axis",
        "_by_numpy",
        "_geometry",
        "_index",
        "_is_new",
        "_offsets",
        "_planned",
        "_runners",
        "dtype",
        "shape",
    )

    shape: tuple[int, ...]
    dtype: DType

    def __init__(self, joined: Joined, *, new_axis: bool) -> None:
        self.shape, self.dtype, self._axis = joined.shape, joined.dtype, joined.axis
        self._index = (*(slice(None),) * joined.axis, None) if new_axis else None
        saved = choice.kernels_save_of_join(joined)
        self._by_numpy = host_library.LIBRARY is None or saved < 0
        self._is_new = saved < choice.COSTS.kernel_plan  # as for `ByKernels`, NumPy makes the first copy then
        arrays = () if self._by_numpy else joined.arrays or ()
        strides = contiguous_strides(joined.shape, joined.dtype.itemsize)
        # Where each part begins in the result.
        lengths = [array.shape[joined.axis] * strides[joined.axis] for array in arrays]
        self._offsets = list(accumulate(lengths[:-1], initial=0))
        self._geometry: tuple[Geometry, ...] = tuple([(array.strides, strides, array.shape) for array in arrays])
        self._planned: dict[tuple[abc.Sequence[int], int], Plan] = {}
        self._runners: dict[tuple[abc.Sequence[int], int], Runner] = {}

    def __sizeof__(self) -> int:
        """Count what it holds, too, and the plans, which are made later."""
        if self._by_numpy:
            return _BYTES_PER_PART
        per_part = _BYTES_PER_PART + _BYTES_PER_AXIS * len(self.shape)
        return MOST_PLANS * _BYTES_PER_PLAN + len(self._offsets) * per_part

    def fresh(self, arrays: abc.Sequence[Array]) -> Array:
        """Return a new array of the arrays side by side."""
        target = np.empty(self.shape, self.dtype)
        self.into(arrays, target)
        return target

    def into(self, arrays: abc.Sequence[Array], target: Array) -> None:
        """Copy arrays side by side into a target."""
        if self._by_numpy or self._is_new:
            self._is_new = False
            np.concatenate(self._with_axis(arrays), axis=self._axis, out=target)
            return
        *sources, base = _addresses_of((*arrays, target))
        places = places_of(sources), base % VECTOR_BYTES
        run = self._runners.get(places)
        if run is not None:
            run(sources, shifted(self._offsets, base))
            return
        planned, left = self._planned.get(places) or self._plan(*places)
        pairs = list(Joined.of_numpy(self._with_axis(arrays), self._axis).pairs(target)) if left else []
        HOST_EXECUTOR.run_planned(planned, sources, shifted(self._offsets, base), [pairs[i] for i in left], target)

    def _with_axis(self, arrays: abc.Sequence[Array]) -> abc.Sequence[Array]:
        """Return views of arrays that have the joined axis."""
        return arrays if self._index is None else [array[self._index] for array in arrays]

    def _plan(self, sources: abc.Sequence[int], base: int) -> Plan:
        arguments = self.dtype.itemsize, self._geometry, sources, shifted(self._offsets, base)
        return HOST_EXECUTOR.kept_plan(self._planned, self._runners, (sources, base), *arguments)


def prepared_join(joined: Joined, *, new_axis: bool) -> JoinByHost | None:
    """Return how a join is copied; None if it is not of NumPy arrays that have one dtype, of bits without gaps."""
    dtype = joined.dtype
    if joined.arrays is None or joined.library is not NUMPY or joined.converts:
        return None
    if dtype.hasobject or not dtype.itemsize or has_gaps(dtype):
        return None
    return JoinByHost(joined, new_axis=new_axis)
