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
  static constexpr unsigned kRun = Executor::template tile_run<Width>();    // items of a tile along the target's run
  static constexpr unsigned kUnit = Executor::template tile_unit<Width>();  // and along the source's unit axis
  static constexpr int kItems = kVectorBytes / Width;
  // At least an item more a row than a tile is wide, so that a column does not fall into one bank of shared memory.
  static constexpr int kPitch = (kUnit + (Executor::kPadding + Width - 1) / Width) * Width;
  static constexpr int kMemory = kRun * kPitch;  // bytes that a tile takes

  // `place` is the first item of the tile; `run` and `unit` are how many items it has along the two axes.
  static GPUSLICE_INLINE void move(const Header<Index>& header, const Place<Index>& place, unsigned run, unsigned unit,
                                   char* memory) {
    const Stride read_pitch = header.source_stride[header.rank - 1];
    const Stride write_pitch = header.target_stride[header.rank - 2];
    if constexpr (Executor::kTransposes)
      Executor::template transpose<Width>(place.source, read_pitch, place.target, write_pitch, run, unit, header.stream,
                                          memory);
    else
      stage(place.source, read_pitch, place.target, write_pitch, run, unit, memory);
  }

  // Source rows into memory, all of them; then columns of it to the target.
  static GPUSLICE_INLINE void stage(const char* source, Stride read_pitch, char* target, Stride write_pitch,
                                    unsigned run, unsigned unit, char* memory) {
    constexpr unsigned kReads = kUnit / kItems, kWrites = kRun / kItems;  // vectors a row
    const auto read = [&](unsigned i) {
      return source + static_cast<Stride>(i / kReads) * read_pitch + i % kReads * kVectorBytes;
    };
    const auto staged = [&](unsigned i) { return memory + i / kReads * kPitch + i % kReads * kVectorBytes; };
    if (run == kRun && unit == kUnit && Executor::storable(source) && read_pitch % kVectorBytes == 0) {
      Executor::template scatter_each<Width, kRun * kReads>(read, staged);
    } else {
      Executor::for_each(run * kReads, [&](unsigned i) {
        const unsigned at = i % kReads * kItems;
        if (at < unit)
          Executor::template copy_items<Width>(staged(i), read(i), unit - at < kItems ? unit - at : kItems);
      });
    }
    Executor::barrier();
    Executor::for_each(unit * kWrites, [&](unsigned i) {
      const unsigned row = i / kWrites, at = i % kWrites * kItems;
      if (at >= run) return;
      const unsigned count = run - at < kItems ? run - at : kItems;
      const char* staged = memory + at * kPitch + row * Width;
      char* written = target + static_cast<Stride>(row) * write_pitch + at * Width;
      if (count == kItems && Executor::storable(written)) {
        Executor::template store<false>(written, Executor::template gather<Width>(staged, kPitch));
      } else {
        for (unsigned j = 0; j < count; ++j) Executor::template item<Width>(written + j * Width, staged + j * kPitch);
      }
    });
  }

  // Items from the beginning of a cache line to an address.
  static GPUSLICE_INLINE Index lead(const char* address) {
    return static_cast<Index>(reinterpret_cast<unsigned long long>(address) % kLineBytes / Width);
  }

  // Begin all tiles along an axis but the first so many items earlier, and make the first shorter.
  static GPUSLICE_INLINE void shift(Index lead, Index& at, unsigned& side) {
    if (at)
      at -= lead;
    else
      side -= static_cast<unsigned>(lead);
  }

  // The tile of a block.
  static GPUSLICE_INLINE void block(const Header<Index>& header, const Tile<Index>& tile, char* memory) {
    const unsigned last = header.rank - 1;
    const Index runs = axis(header, tile, last).value, units = axis(header, tile, last - 1).value;
    // Where stores go past the caches, tiles begin with lines, of the source along its unit axis and of the target
    // along its run, so that none is read or written by two tiles.
    const bool lines = Executor::kTransposes && header.stream;
    const Index ahead = lines ? kLineBytes / Width - 1 : 0;  // the longest lead: what any needs is counted
    const Index run_tiles = (ahead + runs + kRun - 1) / kRun, unit_tiles = (ahead + units + kUnit - 1) / kUnit;
    // Neighbours along the unit axis follow each other: they read what is next in the source.
    const Index row = tile.number / unit_tiles;
    Index unit_at = (tile.number - row * unit_tiles) * kUnit, rest = row / run_tiles;
    Index run_at = (row - rest * run_tiles) * kRun;
    unsigned run_side = kRun, unit_side = kUnit;
    if (lines) {
      shift(lead(tile.target), run_at, run_side);
      shift(lead(tile.source), unit_at, unit_side);
      if (run_at >= runs || unit_at >= units) return;
    }
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
    move(header, place, run < run_side ? run : run_side, unit < unit_side ? unit : unit_side, memory);
  }
};

}  // namespace gpuslice
