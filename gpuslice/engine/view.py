"""What the engine copies: a View is a region of an array, a Joined several views side by side in one result."""

from collections.abc import Iterable, Sequence
from functools import reduce
from types import ModuleType

import numpy as np

from gpuslice.arrays import NUMPY, Array, DType, base_array, device, dtype_name, namespace
from gpuslice.rules import Region, compose, whole


class View:
    """A region of an array, not yet copied.

    Attributes
    ----------
    array : array
    region : Region
        Its items of ``array``.
    xp : module
        Namespace of ``array``.
    """

    __slots__ = ("array", "region", "xp")

    def __init__(self, array: Array, region: Region, xp: ModuleType) -> None:
        self.array = array
        self.region = region
        self.xp = xp

    @classmethod
    def of(cls, array: Array, argument: str = "data") -> "View":
        """View the whole of an array; TypeError where it is none."""
        if type(array) is np.ndarray:
            return cls(array, whole(array.shape), NUMPY)
        xp = namespace(array, argument)
        array = base_array(array)
        return cls(array, whole(tuple(array.shape)), xp)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return self.region.shape

    @property
    def dtype(self) -> DType:
        """Dtype of the items."""
        return self.array.dtype

    @property
    def device(self) -> object:
        """Device of the items."""
        return device(self.array)

    def part(self, region: Region) -> "View":
        """View a region of this view."""
        return View(self.array, compose(self.region, region), self.xp)

    def without_axis(self, axis: int) -> "View":
        """Drop an axis of one item."""
        index = tuple(self.region.first[axis] if i == axis else slice(None) for i in range(len(self.shape)))
        region = Region(*(entry[:axis] + entry[axis + 1 :] for entry in self.region))
        # With the Ellipsis a NumPy index that names every axis still gives an array, not a scalar.
        return View(self.array[(*index, ...)], region, self.xp)

    def with_axis(self, axis: int) -> "View":
        """Insert an axis of one item."""
        region = Region(*(e[:axis] + (n,) + e[axis:] for e, n in zip(self.region, (0, 1, 1), strict=True)))
        return View(self.xp.expand_dims(self.array, axis=axis), region, self.xp)

    def pairs(self, target: Array) -> Iterable[tuple["View", "View"]]:
        """Give what to copy where, so that ``target`` holds this view."""
        return ((self, View(target, whole(self.region.shape), self.xp)),)


class Joined:
    """Views side by side along an axis, not yet copied.

    Parameters
    ----------
    parts : sequence of View
        At least one; alike in rank, namespace, dtype name and all dimensions but ``axis``.
    axis : int
        From the front.
    """

    __slots__ = ("axis", "dtype", "parts", "shape", "xp")

    def __init__(self, parts: Sequence[View], axis: int) -> None:
        first = parts[0]
        self.parts = parts
        self.axis = axis
        self.xp = first.xp
        self.shape = (*first.shape[:axis], sum(part.shape[axis] for part in parts), *first.shape[axis + 1 :])
        self.dtype = reduce(_common_dtype, (part.dtype for part in parts))

    @property
    def device(self) -> object:
        """Device of the items."""
        return self.parts[0].device

    def pairs(self, target: Array) -> Iterable[tuple[View, View]]:
        """Give what to copy where, so that ``target`` holds the parts side by side."""
        rank, start = len(self.shape), 0
        for part in self.parts:
            first = tuple(start if i == self.axis and part.shape[i] else 0 for i in range(rank))
            yield part, View(target, Region(first, (1,) * rank, part.shape), self.xp)
            start += part.shape[self.axis]


def _common_dtype(left: DType, right: DType) -> DType:
    # Dtypes of one name may still differ: in byte order, or in how NumPy stores text.
    if left == right:
        return left
    if dtype_name(left) == "string" and np.dtype(object) in (left, right):
        return np.dtype(object)
    return np.promote_types(left, right)
