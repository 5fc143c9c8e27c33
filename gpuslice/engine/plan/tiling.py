"""How a launch is divided into tiles, one per block."""

from collections import abc
from itertools import accumulate
from math import gcd, prod
from typing import NamedTuple

from gpuslice.engine.plan.kernel_sources import LINE_BYTES, STACK_KINDS, VECTOR_BYTES
from gpuslice.engine.plan.parts import LaunchPlan
from gpuslice.engine.plan.tuning import Tuning

# Targets seldom begin at a cache line, so each tile of a part writes two lines in part, and those cost most.
_LEAST_BYTES = 1 << 10


class Tiling(NamedTuple):
    """The tiles of a launch.

    Attributes
    ----------
    tile : int
        The size of a tile: a number of items, or of entries of axis 0 if ``by_tile``. The tiles,
        pixel_tiles, unstacked and stacked kernels do not use it.
    by_tile : bool
        Whether the parts take turns tile by tile.
    tiles : sequence of int
        How many tiles each part has.
    """

    tile: int
    by_tile: bool
    tiles: abc.Sequence[int]

    def starts(self) -> abc.Iterator[int]:
        """Yield the number of the first tile of each part."""
        return accumulate(self.tiles[:-1], initial=0)


def tiling_of(launch: LaunchPlan, tuning: Tuning, *, stream: bool) -> Tiling:
    """Divide a launch into tiles; ``stream`` says whether stores go past the caches."""
    shapes = launch.shapes
    times = launch.part_count // len(shapes)
    if launch.kind == "tiles":
        sides = tuning.tile_sides.of_items[launch.width]
        return Tiling(0, False, _squares(shapes, sides, launch.width, stream) * times)
    if launch.kind in STACK_KINDS:
        return Tiling(0, False, [_stack_tiles(launch, tuning)])
    if launch.kind == "pixel_tiles":
        sides = tuning.tile_sides.of_pixels(launch.width, shapes[0][-1] * launch.width)
        return Tiling(0, False, _pixel_squares([shape[:-1] for shape in shapes], sides, launch.width, stream) * times)
    item = launch.item_bytes
    tile = _turn(launch, shapes, times, tuning) if launch.part_count > 1 and not launch.axes[0].varies else 0
    if tile:
        return Tiling(tile, True, [-(-shapes[0][0] // tile)] * launch.part_count)
    tile = _multiple(tuning.tile_bytes // item, VECTOR_BYTES)
    return Tiling(tile, False, [-(-prod(shape) // tile) for shape in shapes] * times)


def _turn(launch: LaunchPlan, shapes: abc.Sequence[abc.Sequence[int]], times: int, tuning: Tuning) -> int:
    """Return how many entries of axis 0 each part has in its turn; 0 if the parts do not take turns."""
    item, run = launch.item_bytes, launch.axes[-1]
    apart = abs(run.source) > item
    if not apart and (len(launch.axes) == 1 or max(run.counts) * item > tuning.short_run):
        return 0
    inner = [prod(shape[1:]) * item for shape in shapes]
    largest, total = max(inner), sum(inner) * times
    if largest > tuning.entry_bytes:
        return 0
    shared = tuning.shared_bytes
    if not apart and min(run.counts) * item >= LINE_BYTES:
        shared *= tuning.shared_by_lines
    most = min(shared // total, tuning.part_bytes // largest)
    least = min(_LEAST_BYTES // largest, 4 * shared // total)
    return _multiple(max(most, least), max([VECTOR_BYTES // gcd(VECTOR_BYTES, size) for size in inner]))


def _squares(shapes: abc.Sequence[abc.Sequence[int]], sides: tuple[int, int], width: int, stream: bool) -> list[int]:
    """Return how many tiles of the tiles kernel each part has."""
    # Tiles of streamed targets begin at cache lines, and the plan does not know where in a line an array begins.
    ahead = LINE_BYTES // width - 1 if stream else 0
    unit, run = sides
    return [prod(outer) * -(-(ahead + units) // unit) * -(-(ahead + runs) // run) for *outer, units, runs in shapes]


def _stack_tiles(launch: LaunchPlan, tuning: Tuning) -> int:
    """Return how many tiles the kernels of stacks have."""
    *outer, units, runs = launch.counts(0)
    unit, run = tuning.tile_sides.of_stack(launch.kind, launch.width, len(launch.parts))
    return prod(outer) * -(-units // unit) * -(-runs // run)


def _pixel_squares(
    shapes: abc.Sequence[abc.Sequence[int]], sides: tuple[int, int], width: int, stream: bool
) -> list[int]:
    """Return how many tiles of the pixel_tiles kernels each part has."""
    ahead = LINE_BYTES // width - 1 if stream else 0  # as above, but along the run only
    unit, run = sides
    return [prod(outer) * -(-units // unit) * -(-(ahead + runs) // run) for *outer, units, runs in shapes]


def _multiple(most: int, unit: int) -> int:
    """Return the largest multiple of a unit up to ``most``, so that tiles begin at whole vectors; else ``most``."""
    return max(1, most - most % unit if most >= unit else most)
