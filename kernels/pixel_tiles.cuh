// Tiles of pixels: as tiles.cuh, for items of several channels, whose size need not be a power of two. The channels of
// each pixel may be reversed on the way.
//
// A block reads a tile along the axis on which the source's pixels are neighbours (`unit`) into memory of its own, and
// writes it along the axis on which the target's are (`run`). The last axis of the geometry is the channels of a pixel,
// the one before it the run, the one before that the unit axis. Along the unit axis the source goes forward; the target
// may go backward.
// Limits: channels of 1, 2, 4 and 8 bytes, up to kMostChannels of them; reversed ones only in pixels of at most 16
// bytes. Rank 3 or more; extents that differ between parts only along axis 0. At least 16 bytes along either axis.
// Launch shape: one block per tile, of pixel_tile_sides(), and kPixelTileMemory bytes of memory for each block.
#pragma once

#include "executor.h"
#include "geometry.cuh"
#include "tiles.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

// Copy the tile of a block. `Channels` is 0 if the launch says how many there are.
template <class Index, int Width, int Channels>
GPUSLICE_INLINE void copy_pixel_tile(const Header<Index>& header, const Tile<Index>& tile, char* memory) {
  const unsigned last = header.rank - 1;
  PixelTile<Index> pixels;
  pixels.channels = Channels ? Channels : static_cast<unsigned>(axis(header, tile, last).value);
  pixels.reversed = header.source_stride[last] < 0;
  pixels.read_pitch = header.source_stride[last - 1];
  pixels.write_pitch = header.target_stride[last - 2];
  pixels.runs = axis(header, tile, last - 1).value;
  pixels.units = axis(header, tile, last - 2).value;
  pixels.stream = kPixelTilesAtLines && header.stream;
  pixels.side = pixel_tile_sides(Width, pixels.channels * Width);
  // With stores that go past the caches, each row of a tile is written from a cache line on, and begins up to `ahead`
  // pixels earlier for that.
  const Index ahead = pixels.stream ? kLineBytes / Width - 1 : 0;
  const Index run_tiles = (ahead + pixels.runs + pixels.side.run - 1) / pixels.side.run;
  const Index unit_tiles = (pixels.units + pixels.side.unit - 1) / pixels.side.unit;
  const Index row = tile.number / unit_tiles, rest = row / run_tiles;
  pixels.unit_at = (tile.number - row * unit_tiles) * pixels.side.unit;
  pixels.run_at = (row - rest * run_tiles) * pixels.side.run;
  pixels.source = tile.source - (pixels.reversed ? (pixels.channels - 1) * Width : 0);
  pixels.target = tile.target;
  add_outer_axes(header, tile, last - 2, rest, pixels.source, pixels.target);
  move_pixels<Width, Channels>(pixels, header, tile, memory);
}

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
