// Stacks: many arrays that are the items of one array's rows. Unstacked takes the columns of an array apart, one target
// per column; Stacked is the inverse, with one source per column.
//
// They are tiles as in tiles.cuh whose rows on one side are arrays of their own. The last axis of the geometry is the
// run, the one before it the unit axis. Of Unstacked the unit axis counts the targets, which are contiguous along the
// run; of Stacked the run counts the sources, which are contiguous along the unit axis.
// Limits: widths 1, 2, 4, 8 and 16; rank 2 or more; one part of the geometry. At least 16 bytes along the axis that
// does not count arrays. Along the unit axis the source goes forward; the target of Stacked may go backward. Launch
// shape: one block per tile, of stack_sides(), and kStackMemory bytes of memory for each block.
#pragma once

#include "executor.h"
#include "geometry.cuh"
#include "stack_geometry.cuh"
#include "tiles.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

// Copy the tile of a block. `table` has the addresses of all targets, or of all sources if Stacked.
template <class Index, int Width, bool Stacked>
GPUSLICE_INLINE void copy_stack_tile(const Header<Index>& header, const Tile<Index>& tile,
                                     const unsigned long long* table, char* memory) {
  using Stride = typename Signed<Index>::type;
  const unsigned last = header.rank - 1;
  StackTile<Index> stack;
  stack.runs = axis(header, tile, last).value;
  stack.units = axis(header, tile, last - 1).value;
  stack.side = stack_sides<Width, Stacked>(static_cast<unsigned>(Stacked ? stack.runs : stack.units));
  stack.read_pitch = header.source_stride[last];
  stack.write_pitch = header.target_stride[last - 1];
  stack.stream = header.stream;
  const Index run_tiles = (stack.runs + stack.side.run - 1) / stack.side.run;
  const Index unit_tiles = (stack.units + stack.side.unit - 1) / stack.side.unit;
  // Tiles with neighbouring numbers are neighbours along the axis of the arrays: they share lines of the other side.
  const Index inner = Stacked ? run_tiles : unit_tiles, outer = Stacked ? unit_tiles : run_tiles;
  const Index at_outer = tile.number / inner, at_inner = tile.number - at_outer * inner, rest = at_outer / outer;
  stack.unit_at = (Stacked ? at_outer - rest * outer : at_inner) * stack.side.unit;
  stack.run_at = (Stacked ? at_inner : at_outer - rest * outer) * stack.side.run;
  const Index run = stack.runs - stack.run_at, unit = stack.units - stack.unit_at;
  stack.run = run < stack.side.run ? static_cast<unsigned>(run) : stack.side.run;
  stack.unit = unit < stack.side.unit ? static_cast<unsigned>(unit) : stack.side.unit;
  stack.source = tile.source + static_cast<Stride>(stack.run_at) * stack.read_pitch + stack.unit_at * Width;
  stack.target = tile.target + stack.run_at * Width + static_cast<Stride>(stack.unit_at) * stack.write_pitch;
  add_outer_axes(header, tile, last - 1, rest, stack.source, stack.target);
  if constexpr (Stacked) {
    stack.table = table + stack.run_at;
    stack.offset = static_cast<Stride>(stack.source - tile.source);
    move_stacked<Width>(stack, header, tile, memory);
  } else {
    stack.table = table + stack.unit_at;
    stack.offset = static_cast<Stride>(stack.target - tile.target);
    move_unstacked<Width>(stack, header, tile, memory);
  }
}

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
