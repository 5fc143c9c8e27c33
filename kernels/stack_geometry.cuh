// A tile of the kernels of stacks: how large it is, and where it lies.
#pragma once

#include "config.h"
#include "geometry.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

// The items of a tile of the tiles kernel.
template <int Width>
constexpr unsigned kStackUnit = (GPUSLICE_CUDA ? kCudaTileUnits : kHostTileUnits)[width_index(Width)];
template <int Width>
constexpr unsigned kStackRun = (GPUSLICE_CUDA ? kCudaTileRuns : kHostTileRuns)[width_index(Width)];
// The most arrays of a tile.
template <int Width, bool Stacked>
constexpr unsigned kStackArrays = Stacked ? (GPUSLICE_CUDA ? kStackRun<Width> : kHostStackRuns) : kStackUnit<Width>;

// The items of a tile along both axes.
struct StackSides {
  unsigned unit;
  unsigned run;
};

// A tile has as many items as one of the tiles kernel: of fewer arrays more items each, of more arrays fewer, but
// kStackBytes at least. gpuslice/engine/plan/tiling.py computes the same.
template <int Width, bool Stacked>
GPUSLICE_INLINE StackSides stack_sides(unsigned arrays) {
  constexpr unsigned kItems = kStackUnit<Width> * kStackRun<Width>, kLeast = kStackBytes / Width;
  unsigned side = kVectorBytes / Width;
  while (side < arrays && side < kStackArrays<Width, Stacked>) side *= 2;
  const unsigned other = kItems / side > kLeast ? kItems / side : kLeast;
  return Stacked ? StackSides{other, side} : StackSides{side, other};
}

template <class Index>
struct StackTile {
  using Stride = typename Signed<Index>::type;
  StackSides side;
  const char* source;               // the tile's first item, of the first array if they are sources
  char* target;                     // or targets
  const unsigned long long* table;  // the arrays, from the tile's first one on
  Stride offset;                    // from where an array begins to the tile
  Stride read_pitch;                // from row to row of the source, and of the target
  Stride write_pitch;
  Index runs;  // items along the run and the unit axis, of the launch
  Index units;
  Index run_at;  // where the tile begins
  Index unit_at;
  unsigned run;  // items of the tile
  unsigned unit;
  bool stream;
};

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
