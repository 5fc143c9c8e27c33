"""Consecutive parts of one view along an axis: what a split into many parts is made of."""

from collections import abc
from itertools import accumulate, repeat
from math import prod
from typing import overload

from gpuslice.engine.views import View, index_of
from gpuslice.libraries import Array
from gpuslice.rules import Region


class Consecutive(abc.Sequence[View]):
    """Consecutive parts of a view. Each is made when it is read: there may be millions.

    Parameters
    ----------
    view : View
    axis : int
        Counted from the front.
    sizes : sequence of int
        They add up to the length of the axis.
    keep_axis : bool
        Whether the parts keep the axis. If not, all sizes are 1.
    """

    def __init__(self, view: View, axis: int, sizes: abc.Sequence[int], *, keep_axis: bool = True) -> None:
        self.view = view
        self._axis = axis
        self._sizes = sizes
        self._keep_axis = keep_axis
        shape = view.shape
        self._first = (0,) * axis, (0,) * (len(shape) - axis - 1)
        self._step = (1,) * len(shape)
        self._outer, self._inner = shape[:axis], shape[axis + 1 :]
        self._known_starts: list[int] | None = None

    def of(self, view: View) -> "Consecutive":
        """Return the same parts of another view."""
        return Consecutive(view, self._axis, self._sizes, keep_axis=self._keep_axis)

    def __len__(self) -> int:
        return len(self._sizes)

    def __iter__(self) -> abc.Iterator[View]:
        return map(self._part, self._first_items(), self._sizes)

    @overload
    def __getitem__(self, index: int) -> View: ...
    @overload
    def __getitem__(self, index: slice) -> list[View]: ...
    def __getitem__(self, index: int | slice) -> View | list[View]:
        if isinstance(index, slice):
            return list(map(self._part, self._starts[index], self._sizes[index]))
        position = range(len(self))[index]
        return self._part(self._starts[position], self._sizes[position])

    def shapes(self) -> abc.Iterator[tuple[int, ...]]:
        """Yield the shape of each part."""
        if not self._keep_axis:
            return repeat((*self._outer, *self._inner), len(self))
        return ((*self._outer, size, *self._inner) for size in self._sizes)

    @property
    def are_contiguous(self) -> bool:
        """Whether each part is a contiguous run of a contiguous NumPy array."""
        array = self.view.array
        is_whole = self.view.shape == array.shape and -1 not in self.view.region.step
        return is_whole and array.flags.c_contiguous and prod(self.view.shape[: self._axis]) <= 1

    def arrays(self) -> abc.Iterator[Array]:
        """Yield the parts as the library's own views. This takes about as long as a loop over slices of an array."""
        whole = self.view.array[index_of(self.view.region)]
        outer = (slice(None),) * self._axis
        # The Ellipsis keeps 0-d results arrays, as in `index_of`.
        if not self._keep_axis:
            return (whole[(*outer, start, ...)] for start in range(len(self)))
        ends = accumulate(self._sizes)
        return (whole[(*outer, slice(start, end))] for start, end in zip(self._first_items(), ends, strict=False))

    def _first_items(self) -> abc.Iterator[int]:
        return accumulate(self._sizes, initial=0)

    @property
    def _starts(self) -> list[int]:
        if self._known_starts is None:  # not a cached_property: torch.compile cannot follow its lock
            self._known_starts = list(self._first_items())
        return self._known_starts

    def _part(self, start: int, size: int) -> View:
        before, after = self._first
        first = (*before, start if size else 0, *after)
        part = self.view.part(Region(first, self._step, (*self._outer, size, *self._inner)))
        return part if self._keep_axis else part.without_axis(self._axis)
