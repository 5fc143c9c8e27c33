// A batch: the vectors that a CUDA thread loads before it waits for the first of them, and what may be loaded whole.
//
// Bandwidth needs many loads under way at once, so all loads of a batch come before anything that needs their results.
// The compiler keeps that order only if no branch on what was loaded, or on one vector's alignment, is in between.
// Limits: registers. A source that is not aligned to vectors is loaded as the aligned vectors that hold its bytes, one
// more than it fills.
#pragma once

#include "cuda_vector.cuh"
#include "geometry.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

#ifdef GPUSLICE_THREADS  // the fuzz has fewer: quicker, and it reaches the edges of smaller tiles
constexpr int kThreads = GPUSLICE_THREADS;
#else
constexpr int kThreads = kCudaThreads;
#endif
// Vectors that a thread stores in a batch, that it holds as they were loaded (half of its registers), and that it loads
// while it holds the vectors of a batch.
constexpr int kBatchVectors = 4;
constexpr int kLoaded = 8;
constexpr int kLoadedMore = 2;

// Vectors' worth of items that a thread takes at once. Bodies of several vectors take fewer, because a thread does not
// have more registers.
template <class Body>
constexpr GPUSLICE_INLINE int batch() {
  // Gathered from bytes.
  if (Body::kStride == 0 && Body::kItems > 8 && Body::kWritten == 1) return kBatchVectors / 2;
  return kBatchVectors / Body::kWritten;
}

// How many of so many are loaded together, if each takes some vectors.
constexpr GPUSLICE_INLINE int together(int count, int vectors, int most = kLoaded) {
  while (count > 1 && count * vectors > most) count /= 2;
  return count;
}

// Items between the vectors of a thread.
template <class Body, class Index>
constexpr GPUSLICE_INLINE Index step() {
  return Index(kThreads) * Body::kItems;
}

// How many vectors' worth of items are taken at once if each has a place of its own, which takes registers too.
template <class Body, class Index>
constexpr GPUSLICE_INLINE int apart() {
  const int gathered = Body::kItems > 1 ? 4 : 2;  // an item takes a register until it is in its vector
  return together(batch<Body>(), Body::kRead ? Body::kRead + 1 : gathered, sizeof(Index) > 4 ? 6 : kLoaded);
}

// The bytes that a part's view spans. Its source is one array, so that the bytes between its runs may be read too, but
// never one outside of the span.
template <class Index>
struct Span {
  const char* low;
  Index bytes;
};

template <class Index>
GPUSLICE_INLINE Span<Index> span_of(const Header<Index>& header, const Tile<Index>& tile, int width) {
  using Stride = typename Signed<Index>::type;
  Span<Index> span{tile.source, static_cast<Index>(width)};
#pragma unroll 1
  for (unsigned k = 0; k < header.rank; ++k) {
    const Stride reach = static_cast<Stride>(axis(header, tile, k).value - 1) * header.source_stride[k];
    if (reach < 0) span.low += reach;
    span.bytes += static_cast<Index>(reach < 0 ? -reach : reach);
  }
  return span;
}

GPUSLICE_INLINE unsigned offset_of(const char* address) {
  return static_cast<unsigned>(reinterpret_cast<unsigned long long>(address) % kVectorBytes);
}

// Whether sources are always aligned to vectors, because their items are vectors.
template <class Body>
constexpr GPUSLICE_INLINE bool sources_are_aligned() {
  return Body::kItems == 1;
}

// The aligned vectors that hold the items from some place on: where they begin in each source, and how far before what
// is wanted.
template <class Body>
struct Reading {
  const char* low[Body::kSources];
  unsigned offset[Body::kSources];
};

template <class Body>
GPUSLICE_INLINE Reading<Body> reading_of(const Body& body, const char* source) {
  Reading<Body> reading;
#pragma unroll
  for (int s = 0; s < Body::kSources; ++s) {
    const char* first = body.source_at(Body::first(source), s);
    reading.offset[s] = offset_of(first);
    reading.low[s] = first - reading.offset[s];
  }
  return reading;
}

// Whether the aligned vectors that hold so many vectors from an address on may be loaded: up to 15 bytes on either side
// of them.
template <int Vectors, class Index>
GPUSLICE_INLINE bool are_readable(const Span<Index>& span, const char* first) {
  const unsigned offset = offset_of(first);
  // Unsigned: an address below span.low wraps to a huge number, so one comparison rejects both sides.
  const Index begin = static_cast<Index>(first - offset - span.low);
  return begin <= span.bytes && begin + (Vectors + (offset != 0)) * kVectorBytes <= span.bytes;
}

// Whether the aligned vectors that hold the items from `source` on may be loaded.
template <class Body, class Index, int S = 0>
GPUSLICE_INLINE bool readable(const Body& body, const Span<Index>& span, const char* source) {
  if constexpr (Body::kRead == 0 || S == Body::kSources) {
    return true;
  } else {
    const Span<Index> own{body.source_at(span.low, S), span.bytes * Body::scale(S)};
    return are_readable<Body::vectors(S)>(own, body.source_at(Body::first(source), S)) &&
           readable<Body, Index, S + 1>(body, span, source);
  }
}

template <class Body>
GPUSLICE_INLINE void store(const Body& body, char* target, const typename Body::Registers& registers) {
  for (int i = 0; i < Body::kWritten; ++i) store128cs(body.place(target, i), registers.vector[i]);
}

template <class Body>
GPUSLICE_INLINE bool storable(const Body& body, char* target) {
  bool aligned = is_aligned(body.place(target, 0));
  for (int i = 1; i < Body::kWritten; ++i) aligned = aligned && is_aligned(body.place(target, i));
  return aligned;
}

// The items in vectors that were loaded, source after source: with one vector more of each, if they have to be spliced.
template <bool Spliced, class Body, int Vectors>
GPUSLICE_INLINE typename Body::Registers taken(const Body& body, const Vector128 (&loaded)[Vectors],
                                               const Reading<Body>& reading) {
  Vector128 read[Body::kRead];
#pragma unroll
  for (int i = 0; i < Body::kRead; ++i) {
    const int s = Body::source_of(i);
    if constexpr (Spliced)
      read[i] = spliced(loaded[i + s], loaded[i + s + 1], reading.offset[s]);
    else
      read[i] = loaded[i];
  }
  return body.taken(read);
}

// Load the vectors that hold the items some bytes behind a place.
template <bool Spliced, class Body, int Vectors>
GPUSLICE_INLINE void load_all(const Reading<Body>& reading, int bytes, bool wanted, Vector128 (&loaded)[Vectors]) {
#pragma unroll
  for (int s = 0; s < Body::kSources; ++s)
#pragma unroll
    for (int j = 0; j < Body::vectors(s) + Spliced; ++j) {
      const bool needed = !Spliced || j < Body::vectors(s) || reading.offset[s];
      if (wanted && needed)
        loaded[Body::first_vector(s) + (Spliced ? s : 0) + j] =
            load128_aligned(reading.low[s] + bytes * Body::scale(s) + j * kVectorBytes);
    }
}

// Move a batch of one run. All its vectors of one source are a multiple of 16 bytes apart, and so have one offset from
// an aligned address.
template <bool Spliced, class Body>
GPUSLICE_INLINE void move_batch(const Body& body, const Reading<Body>& reading, char* target) {
  constexpr int kVectors = Body::kRead + (Spliced ? Body::kSources : 0);
  constexpr int kGroup = together(batch<Body>(), kVectors);
  constexpr int kStep = kThreads * Body::kItems;
#pragma unroll 1  // else the compiler would load the next group too, and spill registers
  for (int at = 0; at < batch<Body>(); at += kGroup) {
    Vector128 loaded[kGroup][kVectors];
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      if constexpr (Body::kSources > 1) {
        for (int j = 0; j < kVectors; ++j) loaded[i][j] = {};
      }
      load_all<Spliced>(reading, (at + i) * kStep * Body::kStride, true, loaded[i]);
    }
#pragma unroll
    for (int i = 0; i < kGroup; ++i)
      store(body, target + (at + i) * kStep * Body::kWidth, taken<Spliced>(body, loaded[i], reading));
  }
}

// Move a batch of one run whose items are gathered.
template <class Body, class Stride>
GPUSLICE_INLINE void gather_batch(const Body& body, const char* source, Stride stride, char* target) {
  constexpr int kStep = kThreads * Body::kItems;
  typename Body::Registers registers[batch<Body>()];
#pragma unroll
  for (int i = 0; i < batch<Body>(); ++i)
    registers[i] = Body::gathered(source + static_cast<Stride>(i * kStep) * stride, stride);
#pragma unroll
  for (int i = 0; i < batch<Body>(); ++i) store(body, target + i * kStep * Body::kWidth, registers[i]);
}

// Load a vector's worth of items from each place that is wanted, a bit of `wanted` for each; at most `Most` vectors
// together. Registers that are not loaded are set: else the compiler would keep their old values in them until here.
template <int Most, class Body, class Index, int Count, class Stride>
GPUSLICE_INLINE void load_each(const Body& body, const char* source, const Place<Index> (&place)[Count],
                               unsigned wanted, Stride stride, typename Body::Registers (&registers)[Count]) {
  if constexpr (Body::kRead == 0) {
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      registers[i] = {};
      if (wanted >> i & 1) registers[i] = Body::gathered(source + place[i].source, stride);
    }
  } else {
    constexpr bool kSpliced = !sources_are_aligned<Body>();
    constexpr int kVectors = Body::kRead + (kSpliced ? Body::kSources : 0), kGroup = together(Count, kVectors, Most);
#pragma unroll
    for (int at = 0; at < Count; at += kGroup) {
      Vector128 loaded[kGroup][kVectors] = {};
#pragma unroll
      for (int i = 0; i < kGroup; ++i)
        load_all<kSpliced>(reading_of(body, source + place[at + i].source), 0, wanted >> (at + i) & 1, loaded[i]);
#pragma unroll
      for (int i = 0; i < kGroup; ++i)
        registers[at + i] = taken<kSpliced>(body, loaded[i], reading_of(body, source + place[at + i].source));
    }
  }
}

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
