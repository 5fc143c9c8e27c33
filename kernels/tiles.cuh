// Tiles: sources whose neighbours lie along another axis than the target's run (transposed, Fortran order).
//
// A block reads a tile along the source's unit axis into memory of its own, and writes it along the target's run. The
// last axis is the run; the one before it is the source's unit axis, with steps of one item forward. Source rows and
// target rows are whole vectors where their addresses allow it, else items.
#pragma once

#include "geometry.cuh"

namespace gpuslice {

template <class Executor, class Index, int Width>
struct Tiles {
  using Stride = typename Signed<Index>::type;
  static constexpr int kSide = Executor::template tile_side<Width>();
  static constexpr int kItems = kVectorBytes / Width;
  // One item more a row than a tile is wide, so that a column does not fall into one bank of shared memory.
  static constexpr int kPitch = (kSide + Executor::kPadding / Width) * Width;

  // `place` is the first item of the tile; `run` and `unit` are how many items it has along the two axes.
  static GPUSLICE_INLINE void move(const Header<Index>& header, const Place<Index>& place, unsigned run, unsigned unit,
                                   char* memory) {
    const Stride read_pitch = header.source_stride[header.rank - 1];
    const Stride write_pitch = header.target_stride[header.rank - 2];
    constexpr unsigned kRow = kSide / kItems;  // vectors a row
    Executor::for_each(run * kRow, [&](unsigned i) {
      const unsigned row = i / kRow, at = i % kRow * kItems;
      if (at >= unit) return;
      const unsigned count = unit - at < kItems ? unit - at : kItems;
      const char* source = place.source + static_cast<Stride>(row) * read_pitch + at * Width;
      char* staged = memory + row * kPitch + at * Width;
      Executor::template copy_items<Width>(staged, source, count);
    });
    Executor::barrier();
    Executor::for_each(unit * kRow, [&](unsigned i) {
      const unsigned row = i / kRow, at = i % kRow * kItems;
      if (at >= run) return;
      const unsigned count = run - at < kItems ? run - at : kItems;
      const char* staged = memory + at * kPitch + row * Width;
      char* target = place.target + static_cast<Stride>(row) * write_pitch + at * Width;
      if (count == kItems && Executor::storable(target)) {
        Executor::template store<false>(target, Executor::template gather<Width>(staged, kPitch));
      } else {
        for (unsigned j = 0; j < count; ++j) Executor::template item<Width>(target + j * Width, staged + j * kPitch);
      }
    });
  }

  // The tile of a block: the header's shape counts tiles along the last two axes, `extent` items.
  static GPUSLICE_INLINE void block(const Header<Index>& header, const Tile<Index>& tile, char* memory) {
    const unsigned last = header.rank - 1;
    const Index runs = axis(header, tile, last).value, units = axis(header, tile, last - 1).value;
    const Index run_tiles = (runs + kSide - 1) / kSide, unit_tiles = (units + kSide - 1) / kSide;
    const Index row = tile.number / run_tiles, run_at = (tile.number - row * run_tiles) * kSide;
    Index rest = row / unit_tiles;
    const Index unit_at = (row - rest * unit_tiles) * kSide;
    Place<Index> place{tile.source + static_cast<Stride>(run_at) * header.source_stride[last] + unit_at * Width,
                       tile.target + run_at * Width + static_cast<Stride>(unit_at) * header.target_stride[last - 1], 0,
                       0};
#pragma unroll 1
    for (unsigned k = last - 1; k-- > 0;) {
      const Divisor<Index> extent = axis(header, tile, k);
      const Index outer = k ? Executor::divide(rest, extent) : 0;
      const Index at = rest - outer * extent.value;
      place.source += static_cast<Stride>(at) * header.source_stride[k];
      place.target += static_cast<Stride>(at) * header.target_stride[k];
      rest = outer;
    }
    const Index run = runs - run_at, unit = units - unit_at;
    move(header, place, run < kSide ? run : kSide, unit < kSide ? unit : kSide, memory);
  }
};

}  // namespace gpuslice
