// How a CUDA block brings rows of a source into shared memory, wherever they begin.
//
// One thread's job: a few vectors of the rows. Rows are loaded as aligned vectors, and shifted.
// Limits: no barrier; who reads what was staged needs one. The place of a row's last vector may be written whole.
#pragma once

#include "cuda_batch.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

// A vector of a row.
struct Staged {
  unsigned row;
  unsigned byte;
};

// Load rows of so many bytes into shared memory. `source_at` returns where a row begins, `span_at` what may be read
// around it, and `place_at` where a byte of it goes. A row takes places for `vectors` vectors, which is all that hold
// it or more: those behind it are not loaded. A thread loads `Together` vectors before it stores the first.
template <int Width, unsigned Together, class Source, class Spans, class Place>
GPUSLICE_INLINE void stage_rows(unsigned rows, unsigned bytes, unsigned vectors, const Source& source_at,
                                const Spans& span_at, const Place& place_at) {
  const unsigned count = rows * vectors;
#pragma unroll 1
  for (unsigned at = threadIdx.x; at < count; at += Together * kThreads) {
    // Behind the last vector the first is loaded and stored again, so that no branch decides what is stored.
    const auto staged = [&](unsigned k) {
      const unsigned i = at + k * kThreads < count ? at + k * kThreads : at, row = i / vectors;
      return Staged{row, (i - row * vectors) * kVectorBytes};
    };
    // What may be read is decided before the first load: the registers for that are free when the loads need them.
    unsigned whole = 0, single = 0;  // a bit for each vector that is loaded whole, or goes item by item
#pragma unroll
    for (unsigned k = 0; k < Together; ++k) {
      const Staged to = staged(k);
      if (to.byte >= bytes) continue;
      (are_readable<1>(span_at(to.row), source_at(to.row) + to.byte) ? whole : single) |= 1u << k;
    }
    Vector128 loaded[Together][2] = {};
    unsigned offset[Together];
#pragma unroll
    for (unsigned k = 0; k < Together; ++k) {
      const Staged to = staged(k);
      const char* first = source_at(to.row) + to.byte;
      offset[k] = offset_of(first);
      if (!(whole >> k & 1)) continue;
      loaded[k][0] = load128_aligned(first - offset[k]);
      if (offset[k]) loaded[k][1] = load128_aligned(first - offset[k] + kVectorBytes);
    }
    // What was not loaded is stored too: nothing reads it, or items are stored after it.
#pragma unroll
    for (unsigned k = 0; k < Together; ++k) {
      const Staged to = staged(k);
      *reinterpret_cast<Vector128*>(place_at(to.row, to.byte)) = spliced(loaded[k][0], loaded[k][1], offset[k]);
    }
#pragma unroll 1
    for (unsigned k = 0; single; ++k, single >>= 1) {
      if (!(single & 1)) continue;
      const Staged to = staged(k);
      const char* first = source_at(to.row) + to.byte;
      for (unsigned j = 0; j < kVectorBytes && to.byte + j < bytes; j += Width)
        copy_item<Width>(place_at(to.row, to.byte) + j, first + j);
    }
  }
}

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
