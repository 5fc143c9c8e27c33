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

  // Items [at, end) along an axis that a tile has.
  struct Span {
    Index at;
    Index end;
  };

  static GPUSLICE_INLINE Span span(Index tile, Index side, Index lead, Index items) {
    const Index at = tile * side, end = at + side - lead;
    return {at > lead ? at - lead : 0, end < items ? end : items};  // the last may be empty
  }

  // The tile of a block.
  static GPUSLICE_INLINE void block(const Header<Index>& header, const Tile<Index>& tile, char* memory) {
    const unsigned last = header.rank - 1;
    const Index runs = axis(header, tile, last).value, units = axis(header, tile, last - 1).value;
    // Where stores go past the caches, tiles begin with lines, of the source along its unit axis and of the target
    // along its run, so that none is read or written by two tiles.
    const bool lines = Executor::kTransposes && header.stream;
    const Index run_lead = lines ? lead(tile.target) : 0, unit_lead = lines ? lead(tile.source) : 0;
    const Index ahead = lines ? kLineBytes / Width - 1 : 0;  // the longest lead
    const Index run_tiles = (ahead + runs + kRun - 1) / kRun, unit_tiles = (ahead + units + kUnit - 1) / kUnit;
    // Neighbours along the unit axis follow each other: they read what is next in the source.
    const Index row = tile.number / unit_tiles;
    Index rest = row / run_tiles;
    const Span run = span(row - rest * run_tiles, kRun, run_lead, runs);
    const Span unit = span(tile.number - row * unit_tiles, kUnit, unit_lead, units);
    Place<Index> place{tile.source + static_cast<Stride>(run.at) * header.source_stride[last] + unit.at * Width,
                       tile.target + run.at * Width + static_cast<Stride>(unit.at) * header.target_stride[last - 1], 0,
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
    if (run.at < run.end && unit.at < unit.end) move(header, place, run.end - run.at, unit.end - unit.at, memory);
  }
};

}  // namespace gpuslice
