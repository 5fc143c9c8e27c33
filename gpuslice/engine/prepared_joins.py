"""Joins that are prepared once, for all NumPy arrays of the same shapes, strides and dtypes: a call is a look-up."""

from collections import abc

import numpy as np

from gpuslice.dtypes import DType
from gpuslice.engine import choice, host_library
from gpuslice.engine.fields import has_gaps
from gpuslice.engine.host import HOST_EXECUTOR
from gpuslice.engine.joined import Joined
from gpuslice.engine.kernel_executor import Geometry, byte_offset_and_strides
from gpuslice.libraries import NUMPY, Array, address_of_numpy


class PreparedJoin:
    """NumPy arrays side by side in a C-contiguous one.

    Parameters
    ----------
    joined : Joined
        Of arrays that have the joined axis.
    new_axis : bool
        Whether the arrays of a call do not have it yet.
    """

    __slots__ = ("_axis", "_by_numpy", "_index", "_places", "dtype", "shape")

    shape: tuple[int, ...]
    dtype: DType

    def __init__(self, joined: Joined, *, new_axis: bool) -> None:
        self.shape, self.dtype, self._axis = joined.shape, joined.dtype, joined.axis
        self._index = (*(slice(None),) * joined.axis, None) if new_axis else None
        self._by_numpy = host_library.LIBRARY is None or choice.small_numpy_parts(joined) is not None
        # Where the parts begin in the result, and their strides: known when there is a first result.
        self._places: tuple[list[int], tuple[Geometry, ...]] | None = None

    def fresh(self, arrays: abc.Sequence[Array]) -> Array:
        """Return a new array of the arrays side by side."""
        target = np.empty(self.shape, self.dtype)
        self.into(arrays, target)
        return target

    def into(self, arrays: abc.Sequence[Array], target: Array) -> None:
        """Copy arrays side by side into a target."""
        if self._index is not None:
            arrays = [array[self._index] for array in arrays]
        if self._by_numpy:
            np.concatenate(arrays, axis=self._axis, out=target)
            return
        if self._places is None:
            self._places = self._look(arrays, target)
        offsets, geometry = self._places
        base = address_of_numpy(target)
        sources, targets = list(map(address_of_numpy, arrays)), [base + offset for offset in offsets]
        planned, left = HOST_EXECUTOR.plan(self.dtype.itemsize, geometry, sources, targets)
        pairs = list(Joined.of_numpy(arrays, self._axis).pairs(target)) if left else []
        HOST_EXECUTOR.run_planned(planned, sources, targets, [pairs[i] for i in left], target)

    def _look(self, arrays: abc.Sequence[Array], target: Array) -> tuple[list[int], tuple[Geometry, ...]]:
        offsets, geometry = [], []
        for source, place in Joined.of_numpy(arrays, self._axis).pairs(target):
            offset, strides = byte_offset_and_strides(place.region, target.strides)
            offsets.append(offset)
            geometry.append((source.array.strides, strides, source.shape))
        return offsets, tuple(geometry)


def prepared_join(joined: Joined, *, new_axis: bool) -> PreparedJoin | None:
    """Return how a join is copied; None if it is not of NumPy arrays that have one dtype, of bits without gaps."""
    dtype = joined.dtype
    if joined.arrays is None or joined.library is not NUMPY or joined.converts:
        return None
    if dtype.hasobject or not dtype.itemsize or has_gaps(dtype):
        return None
    return PreparedJoin(joined, new_axis=new_axis)
