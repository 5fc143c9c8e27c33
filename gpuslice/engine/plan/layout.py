"""The bytes of a launch's parameters, as kernels/geometry.cuh declares them: a header and tables."""

import struct
from collections import abc
from dataclasses import dataclass, replace
from math import prod

from gpuslice.engine.plan.kernel_sources import CHANNEL_KINDS, CUDA_CAPACITIES, HEADER_BYTES, MAX_RANK, VECTOR_BYTES
from gpuslice.engine.plan.parts import LaunchPlan
from gpuslice.engine.plan.tiling import Tiling


@dataclass(frozen=True)
class Layout:
    """What differs between the executors that read the parameters.

    Attributes
    ----------
    index_bits : {32, 64}
        Width of the kernel's index, for counts and strides alike.
    capacities : tuple of int
        How many parts the tables may hold; empty if they are as long as the launch needs.
    """

    index_bits: int
    capacities: tuple[int, ...] = ()

    def in_small_parameters(self) -> "Layout":
        """Return the layout for devices and drivers that take 4,096 bytes of parameters."""
        return replace(self, capacities=self.capacities[:-1])

    def capacity(self, entries: int) -> int:
        """Return how many entries the tables for so many parts have."""
        return next((size for size in self.capacities if size >= entries), entries)


HOST_64 = Layout(64)
CUDA_32 = Layout(32, CUDA_CAPACITIES[32])
CUDA_64 = Layout(64, CUDA_CAPACITIES[64])


def index_bits(launch: LaunchPlan) -> int:
    """Return the narrowest index for a launch, by the span of its views: 32 bits reach half their range."""
    shape = [max(axis.counts) for axis in launch.axes]
    # The strides of channels are those of an array with one item of each pixel.
    most = max(launch.kernel.channels) if launch.kind in CHANNEL_KINDS else 1
    spans = [
        most * sum(abs(axis.source) * (n - 1) for axis, n in zip(launch.axes, shape, strict=True)),
        0 if launch.flat else sum(abs(axis.target) * (n - 1) for axis, n in zip(launch.axes, shape, strict=True)),
        most * prod(shape) * launch.item_bytes,
        *(abs(axis.source) for axis in launch.axes),
        *(0 if launch.flat else abs(axis.target) for axis in launch.axes),
    ]
    return 32 if max(spans) + MAX_RANK * VECTOR_BYTES < 2**31 else 64


def divisor(value: int, bits: int) -> tuple[int, int]:
    """Return a divisor and the magic number by which the kernels divide; see kernels/divisor.cuh."""
    shift = (value - 1).bit_length()
    return value, (((1 << shift) - value) << bits) // value + 1


def header(launch: LaunchPlan, tiling: Tiling, layout: Layout, *, stream: bool) -> bytes:
    """Return what comes before the tables: ``struct Header``."""
    rank, bits = len(launch.axes), layout.index_bits
    capacity, varying = layout.capacity(len(launch.parts)), _varying(launch)
    words = (rank, launch.part_count, capacity, varying, int(tiling.by_tile), int(launch.flat), int(stream))
    padding = [0] * (MAX_RANK - rank)
    fields = [tiling.tile, tiling.tiles[0]]
    for axis in launch.axes:
        fields += divisor(axis.counts[0], bits)
    fields += padding + padding
    fields += [axis.source for axis in launch.axes] + padding
    fields += [0 if launch.flat else axis.target for axis in launch.axes] + padding
    unsigned, signed, gap = ("Q", "q", "4x") if bits == 64 else ("I", "i", "")
    packed = struct.pack(f"<7I{gap}{2 + 2 * MAX_RANK}{unsigned}{2 * MAX_RANK}{signed}", *words, *fields)
    return packed.ljust(HEADER_BYTES[bits], b"\0")


def tables_behind_addresses(launch: LaunchPlan, tiling: Tiling, layout: Layout) -> bytes:
    """Return the tables behind those of sources and targets: each part's varying extent and first tile."""
    bits, capacity, varying = layout.index_bits, layout.capacity(len(launch.parts)), _varying(launch)
    extents: list[int] = []
    for i in range(launch.part_count):
        extents += divisor(launch.counts(i)[varying] if varying < MAX_RANK else 1, bits)
    extents += [0] * (2 * (capacity - launch.part_count))
    starts: abc.Sequence[int] = [*tiling.starts(), *[0] * (capacity - launch.part_count)]
    return struct.pack(f"<{3 * capacity}{'Q' if bits == 64 else 'I'}", *extents, *starts)


def _varying(launch: LaunchPlan) -> int:
    return next((k for k, axis in enumerate(launch.axes) if axis.varies), MAX_RANK)
