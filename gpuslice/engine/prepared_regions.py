"""Regions of arrays of one kind, and what copies them: NumPy's own copy, or kernels by plans that are kept."""

from collections import abc
from functools import partial
from typing import Any

from gpuslice.dtypes import DType
from gpuslice.engine.calls import COMPILED
from gpuslice.engine.host import HOST_EXECUTOR
from gpuslice.engine.kernel_executor import (
    MOST_PLANS,
    Geometry,
    KernelExecutor,
    Plan,
    Runner,
    alignments_of,
    shifted,
)
from gpuslice.engine.plan import VECTOR_BYTES
from gpuslice.engine.views import View, index_of
from gpuslice.libraries import Address, Array
from gpuslice.rules import Region

# About what is kept of a region, and of a plan for each part.
_BYTES_PER_REGION, _BYTES_PER_AXIS = 256, 96
_BYTES_PER_PLAN, _BYTES_PER_PART = 2048, 256


class ByNumPy:
    """Regions that NumPy copies. The results of `fresh` are new; `into` writes C-contiguous arrays."""

    __slots__ = ("_first", "_indices", "shapes")

    shapes: list[tuple[int, ...]]

    def __init__(self, regions: abc.Sequence[Region], dropped: int | None) -> None:
        self.shapes = [_without(region.shape, dropped) for region in regions]
        self._indices = tuple([_index_of(region, dropped) for region in regions])
        self._first = self._indices[0]

    def __sizeof__(self) -> int:
        """Count what it holds, too."""
        return _bytes_of(self.shapes)

    def fresh(self, array: Array, *, one_block: bool = False) -> list[Array]:
        """Return a dense copy of each region of an array."""
        return [array[index].copy() for index in self._indices]

    def fresh_one(self, array: Array) -> Array:
        """Return a dense copy of the only region."""
        return array[self._first].copy()

    def into_one(self, array: Array, target: Array) -> None:
        """Copy the only region of an array into a target."""
        target[...] = array[self._first]

    def into(self, array: Array, targets: abc.Sequence[Array]) -> None:
        """Copy each region of an array into its target."""
        # Every view comes before the first copy: copies alone allocate nothing, so all are made or none.
        views = [array[index] for index in self._indices]
        for view, target in zip(views, targets, strict=True):
            target[...] = view


class ByKernels:
    """Regions that kernels copy, with the same methods as `ByNumPy`.

    Parameters
    ----------
    executor : KernelExecutor
    address : callable
        Returns the address of an array.
    dtype : dtype
    regions : sequence of Region
    places : sequence of (int, tuple of int)
        Per region the bytes from the array's first item to its own, and its strides.
    dropped : int or None
        An axis of one item, which the copies do not have.
    first_by_numpy : bool
        Whether NumPy makes the first copy. A call is often the only one of its kind, and a plan would take longer than
        the kernels then save.
    """

    __slots__ = (
        "_address",
        "_addresses",
        "_dropped",
        "_dtype",
        "_executor",
        "_geometry",
        "_is_new",
        "_offsets",
        "_places",
        "_planned",
        "_regions",
        "_runners",
        "shapes",
    )

    shapes: list[tuple[int, ...]]

    def __init__(
        self,
        executor: KernelExecutor,
        address: Address,
        dtype: DType,
        regions: abc.Sequence[Region],
        places: abc.Sequence[tuple[int, tuple[int, ...]]],
        dropped: int | None,
        first_by_numpy: bool,
    ) -> None:
        self._executor = executor
        self._address = address
        self._addresses: abc.Callable[[abc.Sequence[Array]], abc.Iterable[int]] = partial(map, address)
        if COMPILED is not None and executor is HOST_EXECUTOR:
            self._address, self._addresses = COMPILED.address_of, COMPILED.addresses_of
        self._dtype = dtype
        self._regions = regions
        self._dropped = dropped
        self.shapes = [_without(region.shape, dropped) for region in regions]
        self._places = places
        self._geometry: tuple[Geometry, ...] = ()  # made with the first plan, as the offsets are
        self._offsets: list[int] = []
        self._planned: dict[tuple[int, ...], Plan] = {}
        self._runners: dict[tuple[int, ...], Runner] = {}
        self._is_new = first_by_numpy

    def __sizeof__(self) -> int:
        """Count what it holds, too, and the plans, which are made later."""
        plans = MOST_PLANS * (_BYTES_PER_PLAN + _BYTES_PER_PART * len(self.shapes))
        return _bytes_of(self.shapes) + plans

    def fresh(self, array: Array, *, one_block: bool = False) -> list[Array]:
        """Return a dense copy of each region of an array. On CUDA they may share an allocation."""
        targets = self._executor.allocate(self.shapes, self._dtype, array, one_block=one_block)
        self.into(array, targets)
        return targets

    def fresh_one(self, array: Array) -> Array:
        """Return a dense copy of the only region."""
        if self._is_new:
            return self._once_by_numpy().fresh_one(array)
        (target,) = self._executor.allocate(self.shapes, self._dtype, array)
        self.into_one(array, target)
        return target

    def into_one(self, array: Array, target: Array) -> None:
        """Copy the only region of an array into a target."""
        base, address = self._address(array), self._address(target)
        run = self._runners.get((base % VECTOR_BYTES, address % VECTOR_BYTES))
        if run is None:
            self.into(array, (target,))
        else:
            run((base + self._offsets[0],), (address,))

    def into(self, array: Array, targets: abc.Sequence[Array]) -> None:
        """Copy each region of an array into its target."""
        if self._is_new:
            self._once_by_numpy().into(array, targets)
            return
        base, *addresses = self._addresses((array, *targets))
        alignment = alignments_of((base, *addresses))
        run = self._runners.get(alignment)
        if run is not None:
            run(shifted(self._offsets, base), addresses)
            return
        planned, left = self._planned.get(alignment) or self._plan(alignment)
        unmoved = [(self._view(array, i), View.of(targets[i])) for i in left] if left else ()
        self._executor.run_planned(planned, shifted(self._offsets, base), addresses, unmoved, array)

    def _once_by_numpy(self) -> ByNumPy:
        """Return what makes the first copy, if that is NumPy."""
        self._is_new = False
        return ByNumPy(self._regions, self._dropped)

    def _view(self, array: Array, number: int) -> View:
        view = View.of(array).part(self._regions[number])
        return view if self._dropped is None else view.without_axis(self._dropped)

    def _plan(self, alignment: tuple[int, ...]) -> Plan:
        if not self._geometry:
            size, strides = self._dtype.itemsize, [_without(strides, self._dropped) for _, strides in self._places]
            targets = [contiguous_strides(shape, size) for shape in self.shapes]
            self._offsets = [offset for offset, _ in self._places]
            self._geometry = tuple(zip(strides, targets, self.shapes, strict=True))
        sources = shifted(self._offsets, alignment[0])
        arguments = self._dtype.itemsize, self._geometry, sources, alignment[1:]
        return self._executor.kept_plan(self._planned, self._runners, alignment, *arguments)


def _without(entries: tuple[int, ...], axis: int | None) -> tuple[int, ...]:
    return entries if axis is None else entries[:axis] + entries[axis + 1 :]


def _index_of(region: Region, dropped: int | None) -> tuple[Any, ...]:
    index = index_of(region)
    return index if dropped is None else (*index[:dropped], region.first[dropped], *index[dropped + 1 :])


def contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the byte strides of a C-contiguous array, as NumPy gives them."""
    strides, stride = [], itemsize
    for count in reversed(shape):
        strides.append(stride)
        stride *= max(1, count)
    return tuple(reversed(strides))


def _bytes_of(shapes: abc.Sequence[tuple[int, ...]]) -> int:
    """Return about how many bytes are kept of regions with such shapes, all of one rank."""
    return (1 + len(shapes)) * (_BYTES_PER_REGION + _BYTES_PER_AXIS * len(shapes[0]))
