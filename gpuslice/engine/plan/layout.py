"""The bytes of a launch's parameters, as kernels/geometry.cuh declares them: a header and tables."""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from struct import Struct

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
        if not self.capacities:
            return entries
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


# By the bits of an index: ``struct Header`` of the kernels, with the padding that the compiler adds.
_FIELDS = {
    32: f"<7I{2 + 2 * MAX_RANK}I{2 * MAX_RANK}i",
    64: f"<7I4x{2 + 2 * MAX_RANK}Q{2 * MAX_RANK}q",
}
_HEADERS = {bits: Struct(f"{fields}{HEADER_BYTES[bits] - Struct(fields).size}x") for bits, fields in _FIELDS.items()}


def header(launch: LaunchPlan, tiling: Tiling, bits: int, capacity: int, *, stream: bool) -> bytes:
    """Return what comes before the tables: ``struct Header``."""
    rank, varying = len(launch.axes), launch.varying
    padding = (0,) * (MAX_RANK - rank)
    return _HEADERS[bits].pack(
        rank,
        launch.part_count,
        capacity,
        MAX_RANK if varying is None else varying,
        tiling.by_tile,
        launch.flat,
        stream,
        tiling.tile,
        tiling.tiles[0],
        *[word for axis in launch.axes for word in divisor(axis.counts[0], bits)],
        *padding,
        *padding,
        *[axis.source for axis in launch.axes],
        *padding,
        *[0 if launch.flat else axis.target for axis in launch.axes],
        *padding,
    )


def tables_behind_addresses(launch: LaunchPlan, tiling: Tiling, bits: int, capacity: int) -> bytes:
    """Return the tables behind those of sources and targets: each part's varying extent and first tile."""
    if capacity == 1:  # most launches
        return _ONE_PART[bits]
    varying, count = launch.varying, launch.part_count
    extents = (1,) * count if varying is None else launch.axes[varying].counts
    spare = (0,) * (capacity - count)
    return words(3 * capacity, bits).pack(
        *[word for extent in extents for word in divisor(extent, bits)], *spare, *spare, *tiling.starts(), *spare
    )


@lru_cache(maxsize=64)
def words(count: int, bits: int = 64) -> Struct:
    """Return what packs so many addresses or indices."""
    return Struct(f"<{count}{'Q' if bits == 64 else 'I'}")


# An extent of 1 as a divisor, and the first tile.
_ONE_PART = {bits: words(3, bits).pack(*divisor(1, bits), 0) for bits in (32, 64)}
