// Where a tile of pixels is, and how large it is: what pixel_tiles.cuh tells the executor.
#pragma once

#include "geometry.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

#if GPUSLICE_CUDA
constexpr int kPixelUnitBytes = kCudaPixelUnitBytes, kPixelRunBytes = kCudaPixelRunBytes;
#else
constexpr int kPixelUnitBytes = kHostPixelUnitBytes, kPixelRunBytes = kHostPixelRunBytes;
#endif

// Pixels of a tile along the axis on which the source is contiguous, and along the axis on which the target is.
struct PixelTileSides {
  unsigned unit;
  unsigned run;
};

// Source rows of a tile are whole vectors; its target rows are whole cache lines. Python's tiling.py does the same.
GPUSLICE_INLINE constexpr PixelTileSides pixel_tile_sides(unsigned width, unsigned pixel) {
  const unsigned together = kVectorBytes / width;  // pixels that fill vectors, one per channel
  const unsigned units = kPixelUnitBytes / (together * pixel), lines = kPixelRunBytes / (kLineBytes * pixel);
  return {(units ? units : 1) * together, (lines ? lines : 1) * kLineBytes};
}

template <class Index>
struct PixelTile {
  using Stride = typename Signed<Index>::type;
  const char* source;  // the first pixels along both axes, which may lie in other tiles
  char* target;
  Stride read_pitch;   // bytes of the source from a pixel to the next one along the run
  Stride write_pitch;  // bytes of the target from a pixel to the next one along the unit axis
  Index runs;          // pixels along either axis, in all tiles
  Index units;
  Index run_at;  // where the tile begins
  Index unit_at;
  PixelTileSides side;
  unsigned channels;
  bool reversed;  // whether the channels are
  bool stream;
};

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
