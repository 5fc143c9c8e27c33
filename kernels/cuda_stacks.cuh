// How a CUDA block moves a tile of the kernels of stacks: source rows into shared memory, then columns of it to the
// target.
//
// One thread's job: a few vectors of source rows (cuda_staging.cuh), a barrier, a few vectors of target rows. These
// begin at the row's first aligned address, and are gathered item by item from shared memory. Rows that a tile has
// whole are one row on the other side, too.
// Limits: every thread of the block reaches the barrier, or none does.
// Launch shape: 1-D blocks of kThreads threads, one per tile; shared memory is static.
#pragma once

#include "cuda_staging.cuh"
#include "cuda_tiles.cuh"
#include "stack_geometry.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

constexpr unsigned kStackMemory = (1 << 14) + 2304;  // a tile of 16 KiB, and what is between its rows

// Where rows are in shared memory. A vector's worth of rows is followed by a gap, so that neighbouring vectors of the
// target, which come from as many rows each, are read from different banks.
template <int Width>
struct StackLayout {
  unsigned pitch;
  unsigned gap;

  GPUSLICE_INLINE unsigned place(unsigned row, unsigned byte) const {
    return row * pitch + row / (kVectorBytes / Width) * gap + byte;
  }
};

// Write columns of shared memory as rows of the target, of `items` items each. After `lines` items a row goes on with
// the next column.
template <int Width, class Target>
GPUSLICE_INLINE void write_stack(const Target& target_at, unsigned rows, unsigned items, unsigned lines,
                                 const StackLayout<Width>& layout, const char* memory) {
  using Item = typename ItemOf<Width>::type;
  constexpr int kItems = kVectorBytes / Width;
  constexpr unsigned kBeside = 8;  // vectors of a row that neighbouring threads write
  const unsigned slots = (items / kItems + 1 + kBeside) / kBeside * kBeside;
  for_each(slots * rows, [&](unsigned i) {
    const unsigned eight = i / kBeside, row = eight % rows, slot = i % kBeside + eight / rows * kBeside;
    char* target = target_at(row);
    // Vector 0 is the one that the row begins in.
    const int begin = static_cast<int>(slot * kItems) - static_cast<int>(offset_of(target) / Width);
    const int first = begin < 0 ? 0 : begin, end = static_cast<int>(items);
    if (first >= end) return;
    unsigned column = row + first / lines, line = first % lines;
    const auto next = [&](int) {
      const char* item = memory + layout.place(line, column * Width);
      if (++line == lines) line = 0, ++column;
      return item;
    };
    if (begin >= 0 && begin + kItems <= end) {
      store128cs(target + begin * Width,
                 assembled<Width>([&](int k) { return *reinterpret_cast<const Item*>(next(k)); }));
      return;
    }
#pragma unroll 1
    for (int j = first; j < begin + kItems && j < end; ++j) copy_item<Width>(target + j * Width, next(j));
  });
}

template <int Width, class Index>
GPUSLICE_INLINE void move_unstacked(const StackTile<Index>& tile, const Header<Index>& header, const Tile<Index>& part,
                                    char* memory) {
  const Span<Index> span = span_of(header, part, Width);
  using Stride = typename Signed<Index>::type;
  const unsigned bytes = tile.unit * Width;
  const bool whole = tile.read_pitch == static_cast<Stride>(bytes);
  const StackLayout<Width> layout{
      whole ? bytes : tile.side.unit * Width,
      whole || tile.side.unit < kStackArrays<Width, false> || Width == kVectorBytes ? 0u : kVectorBytes};
  const unsigned rows = whole ? 1 : tile.run, staged = whole ? tile.run * bytes : bytes;
  stage_rows<Width, 4>(
      rows, staged, (staged + kVectorBytes - 1) / kVectorBytes,
      [&](unsigned r) { return tile.source + static_cast<Stride>(r) * tile.read_pitch; },
      [&](unsigned) { return span; }, [&](unsigned r, unsigned byte) { return memory + layout.place(r, byte); });
  barrier();
  write_stack<Width>([&](unsigned u) { return reinterpret_cast<char*>(tile.table[u]) + tile.offset; }, tile.unit,
                     tile.run, tile.run, layout, memory);
}

template <int Width, class Index>
GPUSLICE_INLINE void move_stacked(const StackTile<Index>& tile, const Header<Index>& header, const Tile<Index>& part,
                                  char* memory) {
  const Span<Index> span = span_of(header, part, Width);  // of the first array
  using Stride = typename Signed<Index>::type;
  const unsigned bytes = tile.run * Width;
  const bool whole = tile.write_pitch == static_cast<Stride>(bytes);
  const StackLayout<Width> layout{tile.side.unit * Width + kVectorBytes, Width == kVectorBytes ? 0u : kVectorBytes};
  const auto array = [&](unsigned r) { return reinterpret_cast<const char*>(tile.table[r]); };
  const unsigned staged = tile.unit * Width;
  stage_rows<Width, 2>(
      tile.run, staged, (staged + kVectorBytes - 1) / kVectorBytes, [&](unsigned r) { return array(r) + tile.offset; },
      [&](unsigned r) { return Span<Index>{span.low + (array(r) - part.source), span.bytes}; },
      [&](unsigned r, unsigned byte) { return memory + layout.place(r, byte); });
  barrier();
  write_stack<Width>([&](unsigned u) { return tile.target + static_cast<Stride>(u) * tile.write_pitch; },
                     whole ? 1 : tile.unit, whole ? tile.unit * tile.run : tile.run, tile.run, layout, memory);
}

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
