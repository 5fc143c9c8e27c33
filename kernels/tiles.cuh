// Tiles: sources that are contiguous along another axis than their targets (transposed arrays, Fortran order).
//
// A block reads a tile along the source's contiguous axis (`unit`) into memory of its own, and writes it along the
// target's (`run`). The last axis of the geometry is the run, the one before it the unit axis. Source items along the
// unit axis are contiguous and go forward; the target may go backward along it. Source rows and target rows move as
// whole vectors if their addresses allow it, else as single items.
// Limits: widths 1, 2, 4, 8 and 16; rank 2 or more; extents that differ between parts only along axis 0.
// Launch shape: one block per tile of TileShape<Width>, and TileShape<Width>::kMemory bytes of memory for each block.
#pragma once

#include "executor.h"
#include "geometry.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

// The items from the beginning of a cache line to an address.
template <class Index, int Width>
GPUSLICE_INLINE Index items_in_line(const char* address) {
  return static_cast<Index>(reinterpret_cast<unsigned long long>(address) % kLineBytes / Width);
}

// Begin every tile along an axis except the first `lead` items earlier, and make the first shorter by as many.
template <class Index>
GPUSLICE_INLINE void shift_tile(Index lead, Index& at, unsigned& side) {
  if (at)
    at -= lead;
  else
    side -= static_cast<unsigned>(lead);
}

// Go from the first item of a part to where a tile is along its first `axes` axes; `number` counts those places.
template <class Index>
GPUSLICE_INLINE void add_outer_axes(const Header<Index>& header, const Tile<Index>& tile, unsigned axes, Index number,
                                    const char*& source, char*& target) {
  using Stride = typename Signed<Index>::type;
#pragma unroll 1
  for (unsigned k = axes; k-- > 0;) {
    const Divisor<Index> extent = axis(header, tile, k);
    const Index outer = k ? divide(number, extent) : 0;
    const Index at = number - outer * extent.value;
    source += static_cast<Stride>(at) * header.source_stride[k];
    target += static_cast<Stride>(at) * header.target_stride[k];
    number = outer;
  }
}

// Copy the tile of a block.
template <class Index, int Width>
GPUSLICE_INLINE void copy_tile(const Header<Index>& header, const Tile<Index>& tile, char* memory) {
  using Shape = TileShape<Width>;
  using Stride = typename Signed<Index>::type;
  const unsigned last = header.rank - 1;
  const Index runs = axis(header, tile, last).value, units = axis(header, tile, last - 1).value;
  // With stores that go past the caches, tiles begin at cache lines, of the source along the unit axis and of the
  // target along the run, so that no line is read or written by two tiles. The planner allows for the longest lead.
  const bool lines = Shape::kAtLines && header.stream;
  const Index ahead = lines ? kLineBytes / Width - 1 : 0;
  const Index run_tiles = (ahead + runs + Shape::kRun - 1) / Shape::kRun;
  const Index unit_tiles = (ahead + units + Shape::kUnit - 1) / Shape::kUnit;
  // Tiles with neighbouring numbers are neighbours along the unit axis: they read what is next in the source.
  const Index row = tile.number / unit_tiles;
  Index unit_at = (tile.number - row * unit_tiles) * Shape::kUnit;
  const Index rest = row / run_tiles;
  Index run_at = (row - rest * run_tiles) * Shape::kRun;
  unsigned run_side = Shape::kRun, unit_side = Shape::kUnit;
  if (lines) {
    shift_tile(items_in_line<Index, Width>(tile.target), run_at, run_side);
    shift_tile(items_in_line<Index, Width>(tile.source), unit_at, unit_side);
    if (run_at >= runs || unit_at >= units) return;
  }
  const char* source = tile.source + static_cast<Stride>(run_at) * header.source_stride[last] + unit_at * Width;
  char* target = tile.target + run_at * Width + static_cast<Stride>(unit_at) * header.target_stride[last - 1];
  add_outer_axes(header, tile, last - 1, rest, source, target);
  const Index run = runs - run_at, unit = units - unit_at;
  move_tile<Width>(source, header.source_stride[last], target, header.target_stride[last - 1],
                   run < run_side ? static_cast<unsigned>(run) : run_side,
                   unit < unit_side ? static_cast<unsigned>(unit) : unit_side, header.stream, memory);
}

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
