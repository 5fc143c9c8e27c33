// How a CUDA block moves a tile of the kernels of stacks: source rows into shared memory, then columns of it to the
// target.
//
// One thread's job: a few vectors of source rows, a barrier, a few vectors of target rows. Source rows are loaded as
// aligned vectors and shifted, wherever they begin. The vectors of a target row begin at its first aligned address, and
// are gathered item by item from shared memory. Rows that a tile has whole are one row on the other side, too.
// Limits: every thread of the block reaches the barrier, or none does.
// Launch shape: 1-D blocks of kThreads threads, one per tile; shared memory is static.
#pragma once

#include "cuda_batch.cuh"
#include "cuda_tiles.cuh"
#include "stack_geometry.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

// A tile of 16 KiB and what is between its rows; behind them is a vector that is not used.
constexpr unsigned kStackUnused = (1 << 14) + 2304;
constexpr unsigned kStackMemory = kStackUnused + kVectorBytes;

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

// Load rows into shared memory. `source_at` returns where a row begins, `span_at` what may be read around it.
// A thread loads `Together` vectors before it stores the first.
template <int Width, unsigned Together, class Source, class Spans>
GPUSLICE_INLINE void load_stack(const Source& source_at, const Spans& span_at, unsigned rows, unsigned bytes,
                                const StackLayout<Width>& layout, char* memory) {
  const unsigned reads = (bytes + kVectorBytes - 1) / kVectorBytes, count = rows * reads;
#pragma unroll 1
  for (unsigned at = threadIdx.x; at < count; at += Together * kThreads) {
    Vector128 loaded[Together][2] = {};
    unsigned offset[Together];
    unsigned single = 0;  // a bit for each vector that goes item by item
#pragma unroll
    for (unsigned k = 0; k < Together; ++k) {
      const unsigned i = at + k * kThreads, row = i / reads, byte = (i - row * reads) * kVectorBytes;
      const char* first = source_at(row < rows ? row : 0) + byte;
      offset[k] = offset_of(first);
      if (i >= count) continue;
      if (!are_readable<1>(span_at(row), first)) {
        single |= 1u << k;
        continue;
      }
      loaded[k][0] = load128_aligned(first - offset[k]);
      if (offset[k]) loaded[k][1] = load128_aligned(first - offset[k] + kVectorBytes);
    }
    // What was not loaded is stored too, where nothing reads it or items are stored after it.
#pragma unroll
    for (unsigned k = 0; k < Together; ++k) {
      const unsigned i = at + k * kThreads, row = i / reads, byte = (i - row * reads) * kVectorBytes;
      char* staged = memory + (i < count ? layout.place(row, byte) : kStackUnused);
      *reinterpret_cast<Vector128*>(staged) = spliced(loaded[k][0], loaded[k][1], offset[k]);
    }
#pragma unroll 1
    for (unsigned k = 0; single; ++k, single >>= 1) {
      if (!(single & 1)) continue;
      const unsigned i = at + k * kThreads, row = i / reads, byte = (i - row * reads) * kVectorBytes;
      const char* first = source_at(row) + byte;
      for (unsigned j = 0; j < kVectorBytes && byte + j < bytes; j += Width)
        copy_item<Width>(memory + layout.place(row, byte) + j, first + j);
    }
  }
}

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
  load_stack<Width, 4>([&](unsigned r) { return tile.source + static_cast<Stride>(r) * tile.read_pitch; },
                       [&](unsigned) { return span; }, whole ? 1 : tile.run, whole ? tile.run * bytes : bytes, layout,
                       memory);
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
  load_stack<Width, 2>([&](unsigned r) { return array(r) + tile.offset; },
                       [&](unsigned r) { return Span<Index>{span.low + (array(r) - part.source), span.bytes}; },
                       tile.run, tile.unit * Width, layout, memory);
  barrier();
  write_stack<Width>([&](unsigned u) { return tile.target + static_cast<Stride>(u) * tile.write_pitch; },
                     whole ? 1 : tile.unit, whole ? tile.unit * tile.run : tile.run, tile.run, layout, memory);
}

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
