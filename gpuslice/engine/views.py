"""A View is a region of an array that is not copied yet."""

from collections import abc
from types import EllipsisType, ModuleType

import numpy as np

from gpuslice.dtypes import DType
from gpuslice.libraries import NUMPY, Array, Library, device_of, library_of, plain_array, shape_of
from gpuslice.rules import Region, Whole, compose, whole


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
        shape = shape_of(array, library, argument)
        # torch.compile warns of a cache, and does without it.
        return cls(array, whole.__wrapped__(shape) if library.bridge else whole(shape), library)

    @property
    def is_whole(self) -> bool:
        """Whether this is a view of the whole array, item by item. Some such views are not known to be."""
        return type(self.region) is Whole and self.region.shape == self.array.shape

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
    def sources(self) -> abc.Sequence[Array]:
        """The arrays that it reads."""
        return (self.array,)

    @property
    def xp(self) -> ModuleType:
        """Array API namespace of the array."""
        return self.library.xp

    def part(self, region: Region) -> "View":
        """Return a region of this view."""
        return View(self.array, compose(self.region, region), self.library)

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


def ascending(region: Region) -> Region:
    """Return the region of the same items with every step positive."""
    first = (f + s * (n - 1) if s < 0 else f for f, s, n in zip(*region, strict=True))
    return Region(tuple(first), tuple(map(abs, region.step)), region.shape)


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
