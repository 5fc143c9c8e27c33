"""A Joined is several views side by side in one result, not copied yet."""

from __future__ import annotations

from bisect import bisect_right
from collections import abc
from functools import cached_property
from itertools import accumulate
from types import ModuleType
from typing import Any, TypeAlias

from gpuslice.dtypes import DType, common_dtype
from gpuslice.engine.views import View
from gpuslice.libraries import NUMPY, Array, Library, device_of
from gpuslice.rules import Region, whole

# A value that is read in many more pieces than it has parts is better copied once; see `Joined.is_cut_up`.
_FEW_PIECES = 1024
_PIECES_PER_PART = 8
# So is one of many views that becomes a part of another, again and again; see `Joined.is_deep`.
_MOST_DEPTH = 8
_MOST_VIEWS = 1024


class Joined:
    """Views side by side along an axis.

    Parameters
    ----------
    parts : sequence of View or Joined
        At least one. All have one rank, library and ONNX dtype name, and one shape except along ``axis``.
    axis : int
        Counted from the front.
    dtype : dtype, optional
        Default: one that holds the items of all parts.

    Attributes
    ----------
    arrays : sequence of array or None
        The parts, if all are whole NumPy arrays.
    stacked : sequence of View or Joined, or None
        The parts as they are without the joined axis, if they do not have it yet.
    copied : View or None
        A dense copy, if one was made for a reader that needs it.
    depth, views : int
        How often a part is a Joined again, at most, and how many views there are in all.
    """

    axis: int
    dtype: DType
    library: Library
    shape: tuple[int, ...]
    arrays: abc.Sequence[Array] | None
    stacked: abc.Sequence[Lazy] | None
    copied: View | None
    depth: int
    views: int

    def __init__(self, parts: abc.Sequence[Lazy], axis: int, dtype: DType | None = None) -> None:
        self.parts = parts
        self.arrays = self.stacked = None
        self._describe(parts, parts[0].library, axis, dtype)

    @classmethod
    def of_numpy(cls, arrays: abc.Sequence[Array], axis: int) -> Joined:
        """Return NumPy arrays side by side. Views of them are made only if they are wanted."""
        joined = cls.__new__(cls)
        joined.arrays, joined.stacked = arrays, None
        joined._describe(arrays, NUMPY, axis, None)
        return joined

    @classmethod
    def of_stack(cls, values: abc.Sequence[Lazy], axis: int, dtype: DType | None = None) -> Joined:
        """Return values of one shape side by side along a new axis.

        With a library that has no views the axis costs a copy, so they get it only if that is wanted.
        """
        if values[0].library.views:
            return cls([value.with_axis(axis) for value in values], axis, dtype)
        joined = cls.__new__(cls)
        joined.arrays, joined.stacked = None, values
        joined._describe(values, values[0].library, axis, dtype)
        return joined

    def _describe(self, parts: abc.Sequence[Any], library: Library, axis: int, dtype: DType | None) -> None:
        shape = parts[0].shape
        self.axis = axis
        self.library = library
        if self.stacked is None:
            self.shape = (*shape[:axis], sum([part.shape[axis] for part in parts]), *shape[axis + 1 :])
        else:
            self.shape = (*shape[:axis], len(parts), *shape[axis:])
        self.dtype = common_dtype({part.dtype: None for part in parts}) if dtype is None else dtype
        self.copied = None
        self.depth, self.views = 1, len(parts)
        for part in parts:
            if isinstance(part, Joined):
                self.depth = max(self.depth, part.depth + 1)
                self.views += part.views - 1
        self._pieces = 0

    @cached_property
    def parts(self) -> abc.Sequence[Lazy]:
        """What lies side by side."""
        if self.stacked is not None:
            return [value.with_axis(self.axis) for value in self.stacked]
        return [View.of(array) for array in self.arrays or ()]

    @property
    def _given(self) -> abc.Sequence[Lazy]:
        """The parts, or what they are made of."""
        return self.parts if self.stacked is None else self.stacked

    @property
    def count(self) -> int:
        """The number of parts."""
        return len(self._given if self.arrays is None else self.arrays)

    @property
    def array(self) -> Array:
        """The array of the first part, for its device."""
        return self._given[0].array if self.arrays is None else self.arrays[0]

    @property
    def sources(self) -> abc.Sequence[Array]:
        """The arrays that it reads."""
        return [array for part in self._given for array in part.sources] if self.arrays is None else self.arrays

    @property
    def converts(self) -> bool:
        """Whether a part has another dtype. Its items are converted, which can fail: not all bytes are text."""
        parts = self._given if self.arrays is None else self.arrays
        return any(part.dtype != self.dtype or (isinstance(part, Joined) and part.converts) for part in parts)

    @property
    def device(self) -> object:
        """Device of the items."""
        return device_of(self.array)

    @property
    def xp(self) -> ModuleType:
        """Array API namespace of the parts."""
        return self.library.xp

    @property
    def is_cut_up(self) -> bool:
        """Whether so many pieces were taken from it that a dense copy is cheaper."""
        return self._pieces > _FEW_PIECES + _PIECES_PER_PART * self.count

    @property
    def is_deep(self) -> bool:
        """Whether a dense copy is a better part of another value than this one."""
        return self.depth >= _MOST_DEPTH or self.views > _MOST_VIEWS

    def part(self, region: Region) -> Lazy:
        """Return a region of this value: the pieces that it has of each part, without a copy."""
        axis = self.axis
        pieces = [self.parts[i].part(_along(region, axis, *rest)) for i, *rest in self._pieces_of(region)]
        if not pieces:  # no items; any part says what they would be
            pieces = [self.parts[0].part(_along(region, axis, 0, 1, 0))]
        self._pieces += len(pieces)
        if len(pieces) == 1 and pieces[0].dtype == self.dtype:
            return pieces[0]
        return Joined(pieces, axis, self.dtype)

    def with_axis(self, axis: int) -> Joined:
        """Return this value with a new axis of one item."""
        return Joined([part.with_axis(axis) for part in self.parts], self.axis + (axis <= self.axis), self.dtype)

    def without_axis(self, axis: int) -> Joined:
        """Return this value without an axis of one item, which is not the one that it is joined along."""
        return Joined([part.without_axis(axis) for part in self.parts], self.axis - (axis < self.axis), self.dtype)

    def pairs(self, target: Array) -> abc.Iterator[tuple[View, View]]:
        """Return the (source, target) pairs to copy, so that ``target`` holds the parts side by side."""
        return self._pairs(View(target, whole(self.shape), self.library))

    def _pairs(self, target: View) -> abc.Iterator[tuple[View, View]]:
        rank = len(self.shape)
        before, after, steps = (0,) * self.axis, (0,) * (rank - self.axis - 1), (1,) * rank
        for part, start in zip(self.parts, self._starts, strict=True):
            first = start if part.shape[self.axis] else 0
            place = target.part(Region((*before, first, *after), steps, part.shape))
            if isinstance(part, View):
                yield part, place
            else:
                yield from part._pairs(place)

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((part.shape[self.axis] for part in self.parts[:-1]), initial=0))

    def _pieces_of(self, region: Region) -> abc.Iterator[tuple[int, int, int, int]]:
        """Yield the number of each part that a region touches, and first, step and count along the joined axis."""
        first, step, count = (entry[self.axis] for entry in region)
        if not count:
            return
        last = first + step * (count - 1)
        low, high = (bisect_right(self._starts, place) - 1 for place in sorted((first, last)))
        for i in range(low, high + 1) if step > 0 else range(high, low - 1, -1):
            start = self._starts[i]
            end = start + self.parts[i].shape[self.axis]
            # The first and the last position of the region that are inside [start, end).
            near, far = (start, end - 1) if step > 0 else (end - 1, start)
            begin = max(0, -((first - near) // step))
            stop = min(count - 1, (far - first) // step)
            if begin <= stop:
                yield i, first + step * begin - start, step if stop > begin else 1, stop - begin + 1


# A tensor that is not copied yet.
Lazy: TypeAlias = View | Joined


def _along(region: Region, axis: int, *entries: int) -> Region:
    """Return a region with another first, step and count along an axis."""
    return Region(*((*old[:axis], new, *old[axis + 1 :]) for old, new in zip(region, entries, strict=True)))
