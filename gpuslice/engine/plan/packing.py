"""Launches ready for their addresses: what a plan's cache keeps."""

from collections import abc
from struct import Struct
from typing import Any, NamedTuple

from gpuslice.engine.plan.kernel_sources import STACK_KINDS, kernel_number
from gpuslice.engine.plan.layout import Layout, header, tables_behind_addresses, words
from gpuslice.engine.plan.parts import Axis, LaunchPlan
from gpuslice.engine.plan.tiling import tiling_of
from gpuslice.engine.plan.tuning import Tuning


class PackedLaunch(NamedTuple):
    """A launch ready for its addresses.

    Attributes
    ----------
    launch : LaunchPlan
    kernel_number : int
        The kernel's position in the list of kernels/shared.h.
    capacity : int
        Entries of the tables.
    blocks : int
    index_bits : {32, 64}
    head, tail : bytes
        What comes before and after the tables of sources and targets.
    compiled : calls.Launch or None
        What fills in the addresses and launches, if the executor has a compiled form of that.
    """

    launch: LaunchPlan
    kernel_number: int
    capacity: int
    blocks: int
    index_bits: int
    head: bytes
    tail: bytes
    compiled: Any = None

    def __sizeof__(self) -> int:
        """Count what it holds, too: to look at each of its integers takes longer than to make it."""
        return 1024 + len(self.head) + len(self.tail) + 128 * len(self.launch.parts)

    def fill(self, sources: abc.Sequence[int], targets: abc.Sequence[int]) -> bytes:
        """Return the parameters for the addresses of all parts of the plan."""
        launch = self.launch
        ahead, behind, parts = launch.source_offset, launch.target_offset, launch.parts
        if self.capacity == 1:  # most calls; nothing else here costs as much as the lists below
            (part,) = parts
            return self.head + _PAIR.pack(sources[part] + ahead, targets[part] + behind) + self.tail
        spare = [0] * (self.capacity - len(parts))
        source, target = [sources[i] + ahead for i in parts], [targets[i] + behind for i in parts]
        if launch.channel_source or launch.channel_target:
            source = [address + i * launch.channel_source for i, address in enumerate(source)]
            target = [address + i * launch.channel_target for i, address in enumerate(target)]
        return self.head + words(2 * self.capacity).pack(*source, *spare, *target, *spare) + self.tail


_PAIR = Struct("<2Q")


def pack(launch: LaunchPlan, layout: Layout, tuning: Tuning, *, stream: bool = False) -> list[PackedLaunch]:
    """Pack a launch; more parts than a table holds are several launches.

    Parameters
    ----------
    launch : LaunchPlan
    layout : Layout
    tuning : Tuning
    stream : bool
        Whether stores go past the caches.

    Raises
    ------
    LookupError
        The launch asks for a kernel that does not exist.
    """
    most = layout.capacities[-1] if layout.capacities else len(launch.parts)
    chunks = [launch] if len(launch.parts) <= most else _chunks(launch, most)
    return [_pack(chunk, layout, tuning, stream) for chunk in chunks]


def _pack(launch: LaunchPlan, layout: Layout, tuning: Tuning, stream: bool) -> PackedLaunch:
    tiling = tiling_of(launch, tuning, stream=stream)
    bits, capacity = layout.index_bits, layout.capacity(len(launch.parts))
    return PackedLaunch(
        launch,
        kernel_number(launch.kernel),
        capacity,
        sum(tiling.tiles),
        bits,
        header(launch, tiling, bits, capacity, stream=stream),
        tables_behind_addresses(launch, tiling, bits, capacity),
    )


def _chunks(launch: LaunchPlan, most: int) -> abc.Iterator[LaunchPlan]:
    for start in range(0, len(launch.parts), most):
        chunk = slice(start, start + most)
        parts = launch.parts[chunk]
        axes = [Axis(axis.counts[chunk], *axis[1:]) if axis.varies else axis for axis in launch.axes]
        if launch.kind in STACK_KINDS:
            counted = -2 if launch.kind == "unstacked" else -1
            axes[counted] = Axis((len(parts),), *axes[counted][1:])
        yield launch._replace(axes=tuple(axes), parts=parts)
