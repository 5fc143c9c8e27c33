// How the host stores several targets in turns past the caches: by whole cache lines of each.
//
// One thread's job: runs of pixels whose parts go to several targets. The bytes of each target are put together in
// memory of their own, which stays in the first-level cache, and leave it line by line. A line of which a part is
// stored past the caches, and the rest after lines of other targets, is written to memory twice. Limits: any address.
#pragma once

#include "geometry.cuh"
#include "host_vector.h"

namespace gpuslice {
inline namespace GPUSLICE_SET {

template <class Body>
class TargetLines {
 public:
  // Pixels that are moved until whole lines are stored: more of them would push each other out of the cache.
  static constexpr int kPixels = 256 / Body::kWidth;

  // Begin runs whose first pixel goes to `target`.
  GPUSLICE_INLINE void begin(const Body& body, char* target) {
    for (int p = 0; p < kTargets; ++p) {
      char* const address = body.target_at(target, p);
      others_[p] = held_[p] = static_cast<unsigned>(reinterpret_cast<uintptr_t>(address) % kLineBytes);
      line_[p] = address - held_[p];
    }
  }

  // Take the next pixels, at most kPixels, and store the lines that are whole now.
  GPUSLICE_INLINE void move(const Body& body, const char* source, int pixels, long long ahead) {
    char* to[kTargets];
    for (int p = 0; p < kTargets; ++p) to[p] = memory_[p] + held_[p];
    const int vectors = pixels / Body::kItems;
    for (int v = 0; v < vectors; ++v, source += Body::kItems * Body::kStride) {
      if (v % kVectorsInLine == 0)
        for (int i = 0; i < Body::kRead; ++i)
          prefetch(source, ahead + i * (Body::kStride < 0 ? -kLineBytes : kLineBytes));
      const auto registers = load(body, source, Body::kStride);
#pragma GCC unroll 4
      for (int j = 0; j < Body::kWritten; ++j) store128(place(to, j, kVectorBytes), registers.vector[j]);
#pragma GCC unroll 4
      for (int p = 0; p < kTargets; ++p) to[p] += Body::items(p) * kVectorBytes;
    }
    for (int rest = pixels % Body::kItems; rest; --rest, source += Body::kStride) {
      for (int j = 0; j < Body::kWritten; ++j)
        copy_item<Body::kWidth>(place(to, j, Body::kWidth), source + j * Body::kWidth);
      for (int p = 0; p < kTargets; ++p) to[p] += Body::items(p) * Body::kWidth;
    }
#pragma GCC unroll 4
    for (int p = 0; p < kTargets; ++p) store_whole(p, static_cast<unsigned>(to[p] - memory_[p]));
  }

  // Store what is left.
  GPUSLICE_INLINE void finish() {
    for (int p = 0; p < kTargets; ++p) memcpy(line_[p] + others_[p], memory_[p] + others_[p], held_[p] - others_[p]);
  }

 private:
  static constexpr int kTargets = Body::kTargets;
  static constexpr int kVectorsInLine = kLineBytes / kVectorBytes;

  // Where vector or item j of all parts goes.
  static GPUSLICE_INLINE char* place(char* const (&to)[kTargets], int j, int bytes) {
    const int part = Body::part_of(j);
    return to[part] + (j - Body::first_of(part)) * bytes;
  }

  GPUSLICE_INLINE void store_whole(int p, unsigned held) {
    unsigned at = 0;
    if (others_[p] && held >= kLineBytes) {  // the line that began before the first pixel
      memcpy(line_[p] + others_[p], memory_[p] + others_[p], kLineBytes - others_[p]);
      others_[p] = 0;
      at = kLineBytes;
    }
    for (; at + kLineBytes <= held; at += kLineBytes) copy_line_cs(line_[p] + at, memory_[p] + at);
    if (at) memcpy(memory_[p], memory_[p] + at, kLineBytes);
    line_[p] += at;
    held_[p] = held - at;
  }

  alignas(kLineBytes) char memory_[kTargets][2 * kLineBytes + Body::kMostItems * kPixels * Body::kWidth];
  char* line_[kTargets];       // where the first line in memory_ goes
  unsigned held_[kTargets];    // bytes in memory_
  unsigned others_[kTargets];  // the first of them, which are not ours
};

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
