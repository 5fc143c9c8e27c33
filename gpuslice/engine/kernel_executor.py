"""Copies by planned kernel launches: what the host and CUDA executors share. Plans are cached."""

from abc import ABC, abstractmethod
from collections import abc
from math import prod
from operator import mul
from typing import Any, NamedTuple, TypeAlias

from gpuslice.caches import bounded_cache
from gpuslice.dtypes import DType
from gpuslice.engine import generic
from gpuslice.engine.calls import COMPILED
from gpuslice.engine.plan import (
    MAX_CHANNELS,
    PIXEL_BYTES,
    VECTOR_BYTES,
    LaunchPlan,
    PackedLaunch,
    Part,
    are_apart,
    plan,
)
from gpuslice.engine.trace import Launch, is_tracing, record_launch
from gpuslice.engine.views import View
from gpuslice.libraries import Array
from gpuslice.rules import Region

# An allocation from CuPy's pool costs about as much as a launch, so many outputs are cheaper from one allocation.
BLOCK_ABOVE = 8
# CuPy's pool rounds allocations to it, so that outputs in one block are aligned like separate ones.
BLOCK_ALIGNMENT = 512

# Arrays of one kind differ in how they lie in a vector, and to each other. So many plans of a kind are found at once.
MOST_PLANS = 2

Pairs: TypeAlias = abc.Sequence[tuple[View, View]]
# Source strides, target strides and shape of a part.
Geometry: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
# Packed launches with the bytes they move, and the parts that kernels cannot move.
Plan: TypeAlias = tuple[list[tuple[PackedLaunch, int]], list[int]]
# What takes the addresses of all sources and targets.
Runner: TypeAlias = abc.Callable[[abc.Sequence[int], abc.Sequence[int]], None]


class ReadyLaunch(NamedTuple):
    """A packed launch with the addresses filled in.

    Attributes
    ----------
    packed : PackedLaunch
    parameters : bytes
    size : int
        Bytes that it moves.
    shapes : tuple of tuple
        Those of its parts, if a trace is open.
    """

    packed: PackedLaunch
    parameters: bytes
    size: int
    shapes: tuple[tuple[int, ...], ...] = ()


# Launches with their kernels, and the pairs that kernels cannot move.
Work: TypeAlias = tuple[list[tuple[Any, ReadyLaunch]], Pairs]


class KernelExecutor(ABC):
    """Copies views by kernels, and what kernels cannot move by assignment.

    Attributes
    ----------
    name : str
        As a trace shows it.
    fallback : (str, str)
        Executor and kernel, as a trace shows copies by assignment.
    """

    name: str
    fallback: tuple[str, str]

    def __init__(self) -> None:
        self._plans = bounded_cache(8)(self.new_plan)

    @abstractmethod
    def pack(self, launch: LaunchPlan, parts: abc.Sequence[Part], size: int) -> list[PackedLaunch]:
        """Return the parameters of a launch that moves ``size`` bytes, without addresses.

        The addresses of ``parts`` are reduced to their position in a vector.
        """

    @abstractmethod
    def kernel(self, packed: PackedLaunch) -> Any:
        """Return the kernel of a launch, for `launch`. It is compiled if it is not yet."""

    @abstractmethod
    def launch(self, kernel: Any, ready: ReadyLaunch) -> None:
        """Launch a kernel."""

    @abstractmethod
    def runs_on(self, array: Array) -> bool:
        """Return whether kernels can run where an array is."""

    @abstractmethod
    def allocate(
        self, shapes: abc.Sequence[tuple[int, ...]], dtype: DType, beside: Array, *, one_block: bool = False
    ) -> list[Array]:
        """Return new C-contiguous arrays where another one is. With ``one_block`` they may share an allocation."""

    @abstractmethod
    def lie_apart(self, array: Array, outs: abc.Sequence[Array]) -> bool:
        """Return True if an array and contiguous outputs surely share no memory; False if not sure, or elsewhere."""

    def copy(self, pairs: Pairs) -> None:
        """Copy each source view to its target view, which has the same shape."""
        self.run(*self.prepare(pairs))

    def prepare(self, pairs: Pairs) -> Work:
        """Return kernels and launches for pairs in one memory, and the pairs that kernels cannot move.

        Nothing is copied yet: if a kernel does not compile, every target is as it was.
        """
        taken: dict[int, list[tuple[View, View]]] = {}
        left = []
        for source, target in pairs:
            if _moves_bits(source, target):
                # Kernels know of a dtype nothing except its size.
                taken.setdefault(source.dtype.itemsize, []).append((source, target))
            else:
                left.append((source, target))
        launches: list[ReadyLaunch] = []
        for size, members in taken.items():
            ready, unmoved = self._launches(members, size)
            launches += ready
            left += unmoved
        return [(self.kernel(launch.packed), launch) for launch in launches], left

    def run(self, launches: abc.Iterable[tuple[Any, ReadyLaunch]], left: Pairs) -> None:
        """Launch kernels, and assign what they cannot move."""
        if left:
            generic.copy(left, *self.fallback)
        for kernel, launch in launches:
            self.launch(kernel, launch)
            if is_tracing():
                packed, moved = launch.packed, launch.size
                record_launch(
                    Launch(self.name, packed.launch.name, VECTOR_BYTES, packed.blocks, moved, moved, launch.shapes)
                )

    def _launches(self, pairs: Pairs, size: int) -> tuple[list[ReadyLaunch], list[tuple[View, View]]]:
        """Return the launches, and the pairs that kernels cannot move."""
        sources, targets, geometry = [], [], []
        address_of = pairs[0][0].library.address
        assert address_of is not None  # the table names this executor only for libraries with addresses
        array, base = None, 0
        for source, target in pairs:
            if source.array is not array:  # the parts of a split share one array
                array, base = source.array, address_of(source.array)
            offset, source_strides = byte_offset_and_strides(source.region, source.array.strides)
            sources.append(base + offset)
            offset, target_strides = byte_offset_and_strides(target.region, target.array.strides)
            targets.append(address_of(target.array) + offset)
            geometry.append((source_strides, target_strides, source.region.shape))
        planned, left = self.plan(size, tuple(geometry), sources, targets)
        ready = [ReadyLaunch(packed, packed.fill(sources, targets), moved) for packed, moved in planned]
        if is_tracing():
            ready = [one._replace(shapes=tuple([geometry[i][2] for i in one.packed.launch.parts])) for one in ready]
        return ready, [pairs[i] for i in left]

    def plan(
        self, size: int, geometry: tuple[Geometry, ...], sources: abc.Sequence[int], targets: abc.Sequence[int]
    ) -> Plan:
        """Return the plan for parts at some addresses. It holds for all addresses with the same alignment."""
        return self._plans(size, geometry, places_of(sources), places_of(targets))

    def kept_plan(self, plans: dict[Any, Plan], runners: dict[Any, Runner], key: Any, *arguments: Any) -> Plan:
        """Return what `plan` does, and keep the first plans, and what runs them, by a key that stands for addresses."""
        if len(plans) >= MOST_PLANS:
            return self.plan(*arguments)
        plan = plans[key] = self.new_plan(*arguments)
        run = self.runner(plan)
        if run is not None:
            runners[key] = run
        return plan

    def runner(self, plan: Plan) -> Runner | None:
        """Return what runs a plan with the addresses of its parts alone; None if `run_planned` has to."""
        return None

    def run_planned(
        self,
        planned: abc.Sequence[tuple[PackedLaunch, int]],
        sources: abc.Sequence[int],
        targets: abc.Sequence[int],
        left: Pairs,
        array: Array,
    ) -> None:
        """Launch what was planned where an array is, with the addresses of all parts, and assign the pairs left."""
        ready = [ReadyLaunch(packed, packed.fill(sources, targets), moved) for packed, moved in planned]
        # As in `prepare`, every kernel comes before the first copy.
        self.run([(self.kernel(launch.packed), launch) for launch in ready], left)

    def new_plan(
        self, size: int, geometry: tuple[Geometry, ...], sources: abc.Sequence[int], targets: abc.Sequence[int]
    ) -> Plan:
        """Return what `plan` does, for a caller that keeps it."""
        parts = [
            Part(source, strides, target, target_strides, shape)
            for source, target, (strides, target_strides, shape) in zip(sources, targets, geometry, strict=True)
        ]
        launches, left = plan(parts, size)
        packed = []
        for launch in launches:
            moved = _bytes_of(launch, parts, size)
            chunks = self.pack(launch, parts, moved)
            packed += [(one, moved if one.launch is launch else _bytes_of(one.launch, parts, size)) for one in chunks]
        return packed, left


def _bytes_of(launch: LaunchPlan, parts: abc.Sequence[Part], size: int) -> int:
    """Return how many bytes a launch moves."""
    return sum([prod(parts[i].shape) for i in set(launch.parts)]) * size


def _moves_bits(source: View, target: View) -> bool:
    """Return whether a copy moves bits unchanged, none of them references to objects."""
    dtype, written = source.array.dtype, target.array.dtype
    return (dtype is written or dtype == written) and not dtype.hasobject and dtype.itemsize > 0


def byte_offset_and_strides(region: Region, strides: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """Return the bytes from an array's first item to a region's first item, and the region's byte strides."""
    return sum(map(mul, region.first, strides)), tuple(map(mul, region.step, strides))


def _alignments_of(addresses: abc.Sequence[int]) -> tuple[int, ...]:
    """Return the position of each address in a vector."""
    return tuple([address % VECTOR_BYTES for address in addresses])


def _shifted(offsets: abc.Sequence[int], base: int) -> list[int]:
    """Return each offset from the base."""
    return [base + offset for offset in offsets]


alignments_of: abc.Callable[[abc.Sequence[int]], tuple[int, ...]]
alignments_of = _alignments_of if COMPILED is None else COMPILED.alignments_of
shifted: abc.Callable[[abc.Sequence[int], int], list[int]] = _shifted if COMPILED is None else COMPILED.shifted


def places_of(addresses: abc.Sequence[int]) -> abc.Sequence[int]:
    """Return all that a plan depends on of addresses: their position in a vector, and few distances within a pixel.

    Other distances differ from call to call. Arrays that are no neighbours have large distances here, too.
    """
    if len(addresses) > MAX_CHANNELS:
        return _places_of_many(addresses)
    if COMPILED is not None:
        return COMPILED.places_of(addresses, PIXEL_BYTES)
    if len(addresses) == 1:
        return (addresses[0] % VECTOR_BYTES,)
    first, lead = addresses[0], addresses[0] % VECTOR_BYTES
    return tuple(
        [
            address - first + lead if abs(address - first) < PIXEL_BYTES else (i << 20) + address % VECTOR_BYTES
            for i, address in enumerate(addresses)
        ]
    )


def _places_of_many(addresses: abc.Sequence[int]) -> abc.Sequence[int]:
    """Return the positions in a vector of many addresses; from the first on if they are neighbours."""
    distance = addresses[1] - addresses[0]
    if 0 < distance <= VECTOR_BYTES and are_apart(addresses, distance):
        lead = addresses[0] % VECTOR_BYTES
        return range(lead, lead + len(addresses) * distance, distance)  # which is hashed and compared at once
    positions = [address % VECTOR_BYTES for address in addresses]
    if positions[0] < positions[-1]:  # they may look like neighbours
        positions[-1] += VECTOR_BYTES * len(addresses)
    return tuple(positions)
