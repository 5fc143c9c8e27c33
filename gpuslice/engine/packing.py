"""Parameters of a launch as the kernels read them (kernels/geometry.cuh), with holes for the addresses."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from math import gcd, prod

from gpuslice.engine.plan import MAX_CHANNELS, MAX_RANK, VECTOR, Axis, Launch, all_kernels

_LINE = 64
# Targets seldom begin with a cache line, so each tile of a part writes two lines in part, and those cost most.
_LEAST_BYTES = 1 << 10


@dataclass(frozen=True)
class Dialect:
    """What differs between the executors that read the parameters.

    Attributes
    ----------
    tile_bytes : int
        Bytes of target that a block moves, about.
    short_run, shared_bytes, part_bytes : int
        Parts with runs of at most so many bytes in the source are dealt tile by tile, so that those which share source
        rows read them while they are cached; the tiles of all parts together move so many bytes, about, and that of
        each part at most so many.
    tile_sides : dict of int to (int, int)
        Items of a tile of the tiles kernel, by width: along the source's unit axis, and along the target's run.
    index_bits : {32, 64}
        Width of the kernel's index, for counts and strides alike.
    capacities : tuple of int
        How many parts the tables may hold; empty where they are as long as they need be.
    """

    tile_bytes: int
    tile_sides: dict[int, tuple[int, int]]
    short_run: int = 1 << 9
    shared_bytes: int = 1 << 22
    part_bytes: int = 1 << 14
    index_bits: int = 64
    capacities: tuple[int, ...] = ()

    def in_small_parameters(self) -> "Dialect":
        """Give the dialect for devices and drivers that take 4,096 bytes of parameters."""
        return replace(self, capacities=self.capacities[:-1])


HOST = Dialect(1 << 16, {1: (64, 256), 2: (64, 128), 4: (64, 64), 8: (32, 64), 16: (16, 64)}, 1 << 12, 1 << 15, 1 << 17)
# The largest tables are what fits into 32,764 bytes of parameters, the ones before them into 4,096.
_CUDA_SIDES = {1: (128, 128), 2: (64, 64), 4: (32, 32), 8: (32, 32), 16: (32, 32)}
CUDA_32 = Dialect(1 << 14, _CUDA_SIDES, index_bits=32, capacities=(1, 8, 128, 1152))
CUDA_64 = Dialect(1 << 14, _CUDA_SIDES, index_bits=64, capacities=(1, 8, 88, 800))


@dataclass(frozen=True)
class Packed:
    """A launch ready for its addresses.

    Attributes
    ----------
    launch : Launch
    capacity : int
        Entries of the tables.
    blocks : int
    index_bits : {32, 64}
    head, tail : bytes
        What comes before and after the tables of sources and targets.
    """

    launch: Launch
    capacity: int
    blocks: int
    index_bits: int
    head: bytes
    tail: bytes

    def fill(self, sources: Sequence[int], targets: Sequence[int]) -> bytes:
        """Give the parameters for the addresses of all parts of the plan."""
        launch = self.launch
        ahead, behind, parts = launch.source_offset, launch.target_offset, launch.parts
        if self.capacity == 1:  # most calls; nothing else here costs as much as the lists below
            (part,) = parts
            return self.head + _PAIR.pack(sources[part] + ahead, targets[part] + behind) + self.tail
        spare = [0] * (self.capacity - len(parts))
        source, target = [sources[i] + ahead for i in parts], [targets[i] + behind for i in parts]
        return self.head + _addresses(2 * self.capacity).pack(*source, *spare, *target, *spare) + self.tail


_PAIR = struct.Struct("<2Q")


@cache
def _addresses(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}Q")


def pack(launch: Launch, dialect: Dialect, *, stream: bool = False) -> list[Packed]:
    """Pack a launch; more parts than a table holds are several launches.

    Parameters
    ----------
    launch : Launch
    dialect : Dialect
    stream : bool
        Whether stores go past the caches.
    """
    most = dialect.capacities[-1] if dialect.capacities else len(launch.parts)
    return [_pack(chunk, dialect, stream) for chunk in _chunks(launch, most)]


def instantiation(kind: str, width: int, variant: int, bits: int, capacity: int) -> str:
    """Name an instantiation of kernels/copy.cu, as NVRTC is asked for it."""
    index = {32: "unsigned", 64: "unsigned long long"}[bits]
    return f"gpuslice::{kind}<{index}, {capacity}, {width}, {variant}>"


def all_instantiations() -> Iterator[tuple[str, int, int, int, int]]:
    """Give what `instantiation` takes, for all that launches on CUDA can ask for."""
    for kind, width, variant in all_kernels():
        for dialect in (CUDA_32, CUDA_64):
            entries = range(2, MAX_CHANNELS + 1) if kind == "planes" else dialect.capacities
            for capacity in sorted({_capacity(dialect, count) for count in entries}):
                yield kind, width, variant, dialect.index_bits, capacity


def index_bits(launch: Launch) -> int:
    """Give the narrowest index for a launch, by the span of its views: 32 bits reach half their range."""
    shape = [max(axis.counts) for axis in launch.axes]
    spans = [
        sum(abs(axis.source) * (n - 1) for axis, n in zip(launch.axes, shape, strict=True)),
        0 if launch.flat else sum(abs(axis.target) * (n - 1) for axis, n in zip(launch.axes, shape, strict=True)),
        prod(shape) * launch.item_bytes,
        *(abs(axis.source) for axis in launch.axes),
        *(0 if launch.flat else abs(axis.target) for axis in launch.axes),
    ]
    return 32 if max(spans) + MAX_RANK * 16 < 2**31 else 64


def divisor(value: int, bits: int) -> tuple[int, int]:
    """Give a divisor and the magic number by which the kernels divide; see kernels/geometry.cuh."""
    shift = (value - 1).bit_length()
    return value, (((1 << shift) - value) << bits) // value + 1


def _chunks(launch: Launch, most: int) -> Iterator[Launch]:
    if len(launch.parts) <= most:
        yield launch
        return
    for start in range(0, len(launch.parts), most):
        chunk = slice(start, start + most)
        axes = tuple(Axis(axis.counts[chunk], *axis[1:]) if axis.varies else axis for axis in launch.axes)
        yield replace(launch, axes=axes, parts=launch.parts[chunk])


def _pack(launch: Launch, dialect: Dialect, stream: bool) -> Packed:
    dealt = 1 if launch.kind == "planes" else len(launch.parts)
    shapes = [launch.counts(i) for i in range(dealt)]
    if launch.kind == "tiles":
        tile, by_tile, tiles = 0, False, _squares(launch, shapes, dialect, stream)
    else:
        tile, by_tile, tiles = _deal(launch, shapes, dialect)
    rank, bits = len(launch.axes), dialect.index_bits
    entries = len(launch.parts)
    capacity = _capacity(dialect, entries)
    varying = next((k for k, axis in enumerate(launch.axes) if axis.varies), MAX_RANK)
    words = (rank, dealt, capacity, varying, int(by_tile), int(launch.flat), int(stream))
    padding = [0] * (MAX_RANK - rank)
    fields = [tile, tiles[0]]
    for axis in launch.axes:
        fields += divisor(axis.counts[0], bits)
    fields += padding + padding
    fields += [axis.source for axis in launch.axes] + padding
    fields += [0 if launch.flat else axis.target for axis in launch.axes] + padding
    unsigned, signed, gap = ("Q", "q", "4x") if bits == 64 else ("I", "i", "")
    head = struct.pack(f"<7I{gap}{2 + 2 * MAX_RANK}{unsigned}{2 * MAX_RANK}{signed}", *words, *fields)
    extents = [number for shape in shapes for number in divisor(shape[varying] if varying < rank else 1, bits)]
    extents += [0] * (2 * (capacity - dealt))
    starts = [0, *accumulate(tiles)][:dealt] + [0] * (capacity - dealt)
    tail = struct.pack(f"<{3 * capacity}{unsigned}", *extents, *starts)
    return Packed(launch, capacity, sum(tiles), bits, head + b"\0" * (-len(head) % 8), tail)


def _capacity(dialect: Dialect, entries: int) -> int:
    return next((size for size in dialect.capacities if size >= entries), entries)


def _squares(launch: Launch, shapes: Sequence[Sequence[int]], dialect: Dialect, stream: bool) -> list[int]:
    """Give how many tiles of the tiles kernel each part has."""
    # Tiles of streamed targets begin with cache lines, wherever in a line an array does.
    ahead = _LINE // launch.width - 1 if stream else 0
    unit, run = dialect.tile_sides[launch.width]
    return [prod(outer) * -(-(ahead + units) // unit) * -(-(ahead + runs) // run) for *outer, units, runs in shapes]


def _deal(launch: Launch, shapes: Sequence[Sequence[int]], dialect: Dialect) -> tuple[int, bool, list[int]]:
    """Give the size of a tile, whether the parts' tiles alternate, and how many tiles each part has."""
    item, apart = launch.item_bytes, abs(launch.axes[-1].source) > launch.item_bytes
    inner = [prod(shape[1:]) * item for shape in shapes]
    short = apart or max(shape[-1] for shape in shapes) * item <= dialect.short_run
    alike = len(shapes) > 1 and (apart or len(launch.axes) > 1) and not launch.axes[0].varies
    if alike and short and max(inner) <= dialect.tile_bytes:
        most = min(dialect.shared_bytes // sum(inner), dialect.part_bytes // max(inner))
        least = min(_LEAST_BYTES // max(inner), 4 * dialect.shared_bytes // sum(inner))
        tile = _whole(max(most, least), max(VECTOR // gcd(VECTOR, size) for size in inner))
        return tile, True, [-(-shapes[0][0] // tile)] * len(shapes)
    tile = _whole(dialect.tile_bytes // item, VECTOR)
    return tile, False, [-(-prod(shape) // tile) for shape in shapes]


def _whole(most: int, unit: int) -> int:
    """Give a multiple of a unit where there is one: tiles that begin at a vector of a contiguous target."""
    return max(1, most - most % unit if most >= unit else most)
