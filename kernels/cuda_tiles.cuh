// How a CUDA block moves a tile of the tiles kernel: source rows into shared memory, then columns of it to the target.
//
// One thread's job: a few vectors of source rows, a barrier, a few vectors of target rows.
// Limits: every thread of the block reaches the barrier, or none does.
// Launch shape: 1-D blocks of kThreads threads, one per tile; shared memory is static.
#pragma once

#include "cuda_batch.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

template <int Width>
struct TileShape {
  static constexpr unsigned kRun = kCudaTileRuns[width_index(Width)];    // items along the target's contiguous axis
  static constexpr unsigned kUnit = kCudaTileUnits[width_index(Width)];  // items along the source's
  static constexpr bool kAtLines = false;
  // A row is at least a bank of shared memory (4 bytes) longer than a tile is wide, so that the items of a column lie
  // in different banks.
  static constexpr int kPitch = (kUnit + (4 + Width - 1) / Width) * Width;
  static constexpr int kMemory = kRun * kPitch;
};

GPUSLICE_INLINE void barrier() { __syncthreads(); }

template <class Function>
GPUSLICE_INLINE void for_each(unsigned count, Function&& function) {
  for (unsigned i = threadIdx.x; i < count; i += kThreads) function(i);
}

// Store a vector to shared memory, whose rows are aligned to an item, and to a word if items are smaller.
template <int Width>
GPUSLICE_INLINE void scatter(char* target, Vector128 v) {
  if constexpr (Width == 16) {
    *reinterpret_cast<uint4*>(target) = v;
  } else if constexpr (Width == 8) {
    reinterpret_cast<uint2*>(target)[0] = make_uint2(v.x, v.y);
    reinterpret_cast<uint2*>(target)[1] = make_uint2(v.z, v.w);
  } else {
    unsigned* words = reinterpret_cast<unsigned*>(target);
    words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
  }
}

// Copy up to a vector's items to shared memory.
template <int Width>
GPUSLICE_INLINE void copy_items(char* target, const char* source, unsigned count) {
  if (count * Width == kVectorBytes && is_aligned(source)) return scatter<Width>(target, load128_aligned(source));
  for (unsigned i = 0; i < count; ++i) copy_item<Width>(target + i * Width, source + i * Width);
}

// Copy Count aligned vectors to shared memory; a thread loads all of its vectors before it stores the first.
template <int Width, unsigned Count, class Source, class Target>
GPUSLICE_INLINE void scatter_each(const Source& source, const Target& target) {
  constexpr unsigned kRounds = Count / kThreads;
  static_assert(Count % kThreads == 0);
  Vector128 vector[kRounds];
#pragma unroll
  for (unsigned i = 0; i < kRounds; ++i) vector[i] = load128_aligned(source(threadIdx.x + i * kThreads));
#pragma unroll
  for (unsigned i = 0; i < kRounds; ++i) scatter<Width>(target(threadIdx.x + i * kThreads), vector[i]);
}

// Move a tile of `run` by `unit` items; both addresses are those of its first item. `memory` is shared memory.
template <int Width, class Stride>
GPUSLICE_INLINE void move_tile(const char* source, Stride read_pitch, char* target, Stride write_pitch, unsigned run,
                               unsigned unit, bool, char* memory) {
  using Shape = TileShape<Width>;
  constexpr int kItems = kVectorBytes / Width;
  constexpr unsigned kReads = Shape::kUnit / kItems, kWrites = Shape::kRun / kItems;  // vectors per row
  const auto read = [&](unsigned i) {
    return source + static_cast<Stride>(i / kReads) * read_pitch + i % kReads * kVectorBytes;
  };
  const auto staged = [&](unsigned i) { return memory + i / kReads * Shape::kPitch + i % kReads * kVectorBytes; };
  if (run == Shape::kRun && unit == Shape::kUnit && is_aligned(source) && read_pitch % kVectorBytes == 0) {
    scatter_each<Width, Shape::kRun * kReads>(read, staged);
  } else {
    for_each(run * kReads, [&](unsigned i) {
      const unsigned at = i % kReads * kItems;
      if (at < unit) copy_items<Width>(staged(i), read(i), unit - at < kItems ? unit - at : kItems);
    });
  }
  barrier();
  for_each(unit * kWrites, [&](unsigned i) {
    const unsigned row = i / kWrites, at = i % kWrites * kItems;
    if (at >= run) return;
    const unsigned count = run - at < kItems ? run - at : kItems;
    const char* column = memory + at * Shape::kPitch + row * Width;
    char* written = target + static_cast<Stride>(row) * write_pitch + at * Width;
    if (count == kItems && is_aligned(written)) {
      store128cs(written, gather<Width>(column, Shape::kPitch));
    } else {
      for (unsigned j = 0; j < count; ++j) copy_item<Width>(written + j * Width, column + j * Shape::kPitch);
    }
  });
}

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
