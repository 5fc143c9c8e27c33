"""What the engine copies: a View is a region of an array, a Joined is several views side by side in one result."""

from collections import abc
from functools import lru_cache, reduce
from types import EllipsisType, ModuleType

import numpy as np

from gpuslice.dtypes import DType, common_dtype
from gpuslice.libraries import NUMPY, Array, Library, device_of, library_of, plain_array
from gpuslice.rules import Region, compose, whole


class View:
    """A region of an array, not yet copied.

    Attributes
    ----------
    array : array
    region : Region
        Which items of ``array``.
    library : Library
        The library of ``array``.
    """

    __slots__ = ("array", "library", "region")

    array: Array
    library: Library
    region: Region

    def __init__(self, array: Array, region: Region, library: Library) -> None:
        self.array = array
        self.region = region
        self.library = library

    @classmethod
    def of(cls, array: Array, argument: str = "data") -> "View":
        """Return a view of a whole array; raise TypeError if it is not one."""
        if type(array) is np.ndarray:
            return cls(array, whole(array.shape), NUMPY)
        library = library_of(array, argument)
        array = plain_array(array)
        return cls(array, whole(tuple(array.shape)), library)

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
        return device_of(self.array)

    @property
    def xp(self) -> ModuleType:
        """Array API namespace of the array."""
        return self.library.xp

    def part(self, region: Region) -> "View":
        """Return a region of this view."""
        return View(self.array, compose(self.region, region), self.library)

    def parts(self, regions: abc.Sequence[Region]) -> list["View"]:
        """Return several regions of this view."""
        if self.region is whole(self.region.shape):  # most views; there is nothing to compose, for any number of parts
            return [View(self.array, region, self.library) for region in regions]
        return [self.part(region) for region in regions]

    def without_axis(self, axis: int) -> "View":
        """Return this view without an axis of one item."""
        position = tuple(self.region.first[axis] if i == axis else slice(None) for i in range(len(self.shape)))
        region = Region(*(entry[:axis] + entry[axis + 1 :] for entry in self.region))
        # With the Ellipsis, a NumPy index that names every axis still returns an array, not a scalar.
        return View(self.array[(*position, ...)], region, self.library)

    def with_axis(self, axis: int) -> "View":
        """Return this view with a new axis of one item."""
        region = Region(*(e[:axis] + (n,) + e[axis:] for e, n in zip(self.region, (0, 1, 1), strict=True)))
        return View(self.xp.expand_dims(self.array, axis=axis), region, self.library)

    def pairs(self, target: Array) -> abc.Iterable[tuple["View", "View"]]:
        """Return the (source, target) pairs to copy, so that ``target`` holds this view."""
        return ((self, View(target, whole(self.region.shape), self.library)),)


class Joined:
    """Views side by side along an axis, not yet copied.

    Parameters
    ----------
    parts : sequence of View
        At least one. All have one rank, library and ONNX dtype name, and one shape except along ``axis``.
    axis : int
        Counted from the front.
    """

    __slots__ = ("axis", "dtype", "library", "parts", "shape")

    axis: int
    dtype: DType
    library: Library
    parts: abc.Sequence[View]
    shape: tuple[int, ...]

    def __init__(self, parts: abc.Sequence[View], axis: int) -> None:
        first = parts[0]
        self.parts = parts
        self.axis = axis
        self.library = first.library
        self.shape = (*first.shape[:axis], sum(part.shape[axis] for part in parts), *first.shape[axis + 1 :])
        self.dtype = reduce(common_dtype, (part.dtype for part in parts))

    @property
    def array(self) -> Array:
        """The array of the first part, for its device."""
        return self.parts[0].array

    @property
    def device(self) -> object:
        """Device of the items."""
        return self.parts[0].device

    @property
    def xp(self) -> ModuleType:
        """Array API namespace of the parts."""
        return self.library.xp

    def pairs(self, target: Array) -> abc.Iterable[tuple[View, View]]:
        """Return the (source, target) pairs to copy, so that ``target`` holds the parts side by side."""
        rank, start = len(self.shape), 0
        for part in self.parts:
            first = tuple(start if i == self.axis and part.shape[i] else 0 for i in range(rank))
            yield part, View(target, Region(first, (1,) * rank, part.shape), self.library)
            start += part.shape[self.axis]


@lru_cache(maxsize=1024)
def index_of(region: Region) -> tuple[slice | EllipsisType, ...]:
    """Return the index that takes a region from an array: one slice per axis, in the range array-api-strict accepts.

    The Ellipsis keeps 0-d results arrays. Without it NumPy returns a scalar, and for an object array the object itself.
    """
    return (*map(_axis_slice, region.first, region.step, region.shape), ...)


def _axis_slice(first: int, step: int, count: int) -> slice:
    if count == 0:
        return slice(0, 0, 1)
    stop = first + step * (count - 1) + (1 if step > 0 else -1)
    # -1 would mean the last element; None is the only way to say "before element 0".
    return slice(first, stop if stop >= 0 else None, step)
