"""How large the tiles of a launch are, per executor. These numbers change the speed, never the result."""

from dataclasses import dataclass

from gpuslice.engine.plan.kernel_sources import CUDA_TILE_SIDES, HOST_TILE_SIDES, TileSides


@dataclass(frozen=True)
class Tuning:
    """The sizes of tiles.

    Attributes
    ----------
    tile_bytes : int
        Bytes of target that a block moves, about.
    tile_sides : TileSides
        Of the tiles and pixel_tiles kernels.
    short_run, entry_bytes, shared_bytes, shared_by_lines, part_bytes : int
        Parts whose runs have at most ``short_run`` bytes in the source, and whose entries of axis 0 have at most
        ``entry_bytes`` in the target, take turns, tile by tile, so that those which share source rows read them while
        they are cached. Then the tiles of all parts together move about ``shared_bytes``, or ``shared_by_lines`` times
        as many if runs are at least a cache line, and that of each part at most ``part_bytes``.
    """

    tile_bytes: int
    tile_sides: TileSides
    short_run: int
    entry_bytes: int
    shared_bytes: int
    shared_by_lines: int = 1
    part_bytes: int = 1 << 14


HOST = Tuning(
    1 << 18,
    HOST_TILE_SIDES,
    short_run=1 << 12,
    entry_bytes=1 << 16,
    shared_bytes=1 << 15,
    shared_by_lines=4,
    part_bytes=1 << 17,
)
CUDA = Tuning(1 << 14, CUDA_TILE_SIDES, short_run=1 << 9, entry_bytes=1 << 14, shared_bytes=1 << 22)
