// How a CUDA block moves a tile of the tiles kernel: source rows into shared memory, then columns of it to the target.
//
// One thread's job: a few vectors of source rows, a barrier, a few vectors of target rows.
// Limits: every thread of the block reaches the barrier, or none does.
// Launch shape: 1-D blocks of kThreads threads, one per tile; shared memory is static.
#pragma once

#include "cuda_batch.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

// Shared memory has 32 banks of a word. Lanes that read or write different words of one bank do so one after the other.
// So a vector's place in its row of a tile depends on the row: a warp writes whole rows, and reads the words of 8
// groups of rows that become 8 neighbouring vectors of the target, both without conflicts.
template <int Width>
struct TileShape {
  static constexpr unsigned kRun = kCudaTileRuns[width_index(Width)];    // items along the target's contiguous axis
  static constexpr unsigned kUnit = kCudaTileUnits[width_index(Width)];  // items along the source's
  static constexpr bool kAtLines = false;
  static constexpr unsigned kItems = kVectorBytes / Width;
  static constexpr unsigned kGroups = 8;                           // whose places differ
  static constexpr unsigned kColumns = Width < 4 ? 4 / Width : 1;  // of items in a word, or one if an item is more
  static constexpr unsigned kPitch = kUnit * Width;
  static constexpr unsigned kMemory = kRun * kPitch;
  static_assert(kPitch % (kGroups * kVectorBytes) == 0 && kRun % (kGroups * kItems) == 0);

  // Where a byte of a row is.
  static GPUSLICE_INLINE unsigned place(unsigned row, unsigned byte) {
    return row * kPitch + (byte ^ row / kItems % kGroups * kVectorBytes);
  }
};

GPUSLICE_INLINE void barrier() { __syncthreads(); }

template <class Function>
GPUSLICE_INLINE void for_each(unsigned count, Function&& function) {
  for (unsigned i = threadIdx.x; i < count; i += kThreads) function(i);
}

// Copy up to a vector's items to shared memory.
template <int Width>
GPUSLICE_INLINE void copy_items(char* target, const char* source, unsigned count) {
  if (count * Width == kVectorBytes && is_aligned(source)) {
    *reinterpret_cast<Vector128*>(target) = load128_aligned(source);
    return;
  }
  for (unsigned i = 0; i < count; ++i) copy_item<Width>(target + i * Width, source + i * Width);
}

// Copy Count aligned vectors to shared memory; a thread loads all of its vectors before it stores the first.
template <unsigned Count, class Source, class Target>
GPUSLICE_INLINE void copy_each(const Source& source, const Target& target) {
  constexpr unsigned kRounds = Count / kThreads;
  static_assert(Count % kThreads == 0);
  Vector128 vector[kRounds];
#pragma unroll
  for (unsigned i = 0; i < kRounds; ++i) vector[i] = load128_aligned(source(threadIdx.x + i * kThreads));
#pragma unroll
  for (unsigned i = 0; i < kRounds; ++i) *reinterpret_cast<Vector128*>(target(threadIdx.x + i * kThreads)) = vector[i];
}

// Bytes become columns: of 4 words, word i of the result has byte i of each.
GPUSLICE_INLINE void transpose(unsigned (&word)[4]) {
  const unsigned low01 = __byte_perm(word[0], word[1], 0x5140), high01 = __byte_perm(word[0], word[1], 0x7362);
  const unsigned low23 = __byte_perm(word[2], word[3], 0x5140), high23 = __byte_perm(word[2], word[3], 0x7362);
  word[0] = __byte_perm(low01, low23, 0x5410), word[1] = __byte_perm(low01, low23, 0x7632);
  word[2] = __byte_perm(high01, high23, 0x5410), word[3] = __byte_perm(high01, high23, 0x7632);
}

// Read the columns of items in a word, one vector for each, from shared memory whose rows lie `pitch` bytes apart.
template <int Width, unsigned Columns>
GPUSLICE_INLINE void read_columns(const char* source, unsigned pitch, Vector128 (&column)[Columns]) {
  const auto read = [&](int row) { return *reinterpret_cast<const unsigned*>(source + row * pitch); };
  if constexpr (Width == 1) {
    unsigned word[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) word[i][j] = read(4 * i + j);
      transpose(word[i]);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) column[i] = make_uint4(word[0][i], word[1][i], word[2][i], word[3][i]);
  } else if constexpr (Width == 2) {
    unsigned low[4], high[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned a = read(2 * i), b = read(2 * i + 1);
      low[i] = __byte_perm(a, b, 0x5410), high[i] = __byte_perm(a, b, 0x7632);
    }
    column[0] = make_uint4(low[0], low[1], low[2], low[3]), column[1] = make_uint4(high[0], high[1], high[2], high[3]);
  } else {
    column[0] = gather<Width>(source, pitch);
  }
}

// Move a tile of `run` by `unit` items; both addresses are those of its first item. `memory` is shared memory.
template <int Width, class Stride>
GPUSLICE_INLINE void move_tile(const char* source, Stride read_pitch, char* target, Stride write_pitch, unsigned run,
                               unsigned unit, bool, char* memory) {
  using Shape = TileShape<Width>;
  constexpr unsigned kItems = Shape::kItems, kGroups = Shape::kGroups, kColumns = Shape::kColumns;
  constexpr unsigned kReads = Shape::kPitch / kVectorBytes;  // vectors per row
  const auto read = [&](unsigned i) {
    return source + static_cast<Stride>(i / kReads) * read_pitch + i % kReads * kVectorBytes;
  };
  const auto staged = [&](unsigned i) { return memory + Shape::place(i / kReads, i % kReads * kVectorBytes); };
  if (run == Shape::kRun && unit == Shape::kUnit && is_aligned(source) && read_pitch % kVectorBytes == 0) {
    copy_each<Shape::kRun * kReads>(read, staged);
  } else {
    for_each(run * kReads, [&](unsigned i) {
      const unsigned at = i % kReads * kItems;
      if (at < unit) copy_items<Width>(staged(i), read(i), unit - at < kItems ? unit - at : kItems);
    });
  }
  barrier();
  constexpr unsigned kWords = Shape::kUnit / kColumns;  // or items, if they are more
  for_each(Shape::kRun / kItems * kWords, [&](unsigned i) {
    const unsigned at = (i % kGroups + i / (kGroups * kWords) * kGroups) * kItems;
    const unsigned row = i / kGroups % kWords * kColumns;
    if (at >= run || row >= unit) return;
    Vector128 column[kColumns];
    read_columns<Width>(memory + Shape::place(at, row * Width), Shape::kPitch, column);
#pragma unroll
    for (unsigned k = 0; k < kColumns; ++k) {
      if (row + k >= unit) return;
      char* written = target + static_cast<Stride>(row + k) * write_pitch + at * Width;
      if (at + kItems <= run && is_aligned(written))
        store128cs(written, column[k]);
      else
#pragma unroll 1
        for (unsigned j = 0; j < kItems && at + j < run; ++j)
          copy_item<Width>(written + j * Width, memory + Shape::place(at + j, (row + k) * Width));
    }
  });
}

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
