// How the threads of a CUDA block share the items of a tile, for the kernels whose bodies are Rows, Planes, Rearranged.
//
// A thread takes a few vectors that lie a block's width apart, so that neighbouring threads touch neighbouring bytes.
// It loads all of them before it stores the first, which keeps that many loads in flight. If they lie in one run, their
// place is found once. A vector of a contiguous target that ends one run and begins the next is spliced from two.
// Everything else moves item by item.
// Limits: no shared memory and no barrier, so threads may leave early.
// Launch shape: 1-D blocks of kThreads threads, one per tile.
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
constexpr int kInFlight = 4;  // vectors of a thread; more only if one batch of a body has more

// Vectors' worth of items that a thread takes at once. Bodies of several vectors take fewer, because a thread does not
// have more registers.
template <class Body>
constexpr GPUSLICE_INLINE int batch() {
  if (Body::kStride == 0 && Body::kItems > 8) return kInFlight / 2;  // gathered from bytes
  return kInFlight / Body::kWritten;
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

// Whether load128() may read `vectors` vectors from `first` on, and what a misaligned load reads before and after them.
template <class Index>
GPUSLICE_INLINE bool readable(const char* first, int vectors, const Span<Index>& span) {
  const unsigned offset = static_cast<unsigned>(reinterpret_cast<unsigned long long>(first) % kVectorBytes);
  // Unsigned: an address below span.low wraps to a huge number, so one comparison rejects both sides.
  const Index begin = static_cast<Index>(first - offset - span.low);
  return begin <= span.bytes && begin + (vectors + (offset != 0)) * kVectorBytes <= span.bytes;
}

template <class Body, class Index>
GPUSLICE_INLINE bool readable(const Span<Index>& span, const char* source) {
  return Body::kRead == 0 || readable(Body::first(source), Body::kRead, span);
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

// Whether the items of a vector can be loaded and stored whole.
template <class Body, class Index>
GPUSLICE_INLINE bool movable(const Body& body, const Span<Index>& span, const Place<Index>& place) {
  return place.room >= Body::kItems && storable(body, place.target) && readable<Body>(span, place.source);
}

// The items of a tile before the first aligned vector of a contiguous target.
template <class Body, class Index>
GPUSLICE_INLINE Index items_ahead(const Header<Index>& header, const Tile<Index>& tile) {
  if (Body::kWritten > 1 || !header.flat) return 0;
  const auto first = reinterpret_cast<unsigned long long>(tile.target + tile.begin * Body::kWidth);
  return static_cast<Index>((0 - first) % kVectorBytes / Body::kWidth);
}

// Move a batch that lies in one run, so that its place is found once. Return false if it does not lie in one run, or if
// its vectors cannot be moved whole.
template <class Body, class Index, class Stride>
GPUSLICE_INLINE bool move_in_run(const Body& body, const Span<Index>& span, const Place<Index>& first, Stride stride) {
  constexpr Index kStep = Index(kThreads) * Body::kItems, kLast = (batch<Body>() - 1) * kStep;
  if (first.room <= kLast) return false;
  const Place<Index> last{first.source + static_cast<Stride>(kLast) * stride, first.target + kLast * Body::kWidth,
                          first.done + kLast, first.room - kLast};
  if (!movable(body, span, first) || !movable(body, span, last)) return false;
  typename Body::Registers registers[batch<Body>()];
#pragma unroll
  for (int i = 0; i < batch<Body>(); ++i)
    registers[i] = body.load(first.source + static_cast<Stride>(i * kStep) * stride, stride);
#pragma unroll
  for (int i = 0; i < batch<Body>(); ++i) store(body, first.target + i * kStep * Body::kWidth, registers[i]);
  return true;
}

// Move a vector of a contiguous target that ends one run and begins the next: it is spliced from the last whole vector
// of the one and the first of the other. Return false if it is not such a vector, or if runs are shorter than a vector.
template <class Body, class Index, class Stride>
GPUSLICE_INLINE bool move_across(const Body& body, const Span<Index>& span, const Header<Index>& header,
                                 const Tile<Index>& tile, Index item, Stride stride) {
  if (!header.flat || item + Body::kItems > tile.end) return false;
  const Place<Index> end = place_of(header, tile, item, Body::kWidth);
  if (end.room >= Body::kItems || end.room + end.done < Body::kItems || !storable(body, end.target)) return false;
  const Place<Index> begin = place_of(header, tile, item + end.room, Body::kWidth);
  const Index before = Body::kItems - end.room;
  const char* last = end.source - static_cast<Stride>(before) * stride;
  if (!readable<Body>(span, last) || !readable<Body>(span, begin.source)) return false;
  const typename Body::Registers a = body.load(last, stride), b = body.load(begin.source, stride);
  store128cs(end.target, spliced(a.vector[0], b.vector[0], before * Body::kWidth));
  return true;
}

// Move the items of one vector that is not whole: the end of a run and the beginning of the next, or the end of a tile.
template <class Body, class Index, class Stride>
GPUSLICE_INLINE void move_items(const Body& body, const Header<Index>& header, const Tile<Index>& tile, Index item,
                                Stride stride) {
  const Index end = item + Body::kItems < tile.end ? item + Body::kItems : tile.end;
  Place<Index> place{nullptr, nullptr, 0, 0};
#pragma unroll 1
  for (;;) {
    if (!place.room) place = place_of(header, tile, item, Body::kWidth);
    body.item(place.target, place.source);
    if (++item >= end) return;
    --place.room;
    place.source += stride;
    place.target += Body::kWidth;
  }
}

// Move a batch of vectors that each have a place of their own, and may have to go item by item.
template <class Body, class Index, class Stride>
GPUSLICE_INLINE void move_apart(const Body& body, const Span<Index>& span, const Header<Index>& header,
                                const Tile<Index>& tile, Index at, Stride stride) {
  constexpr Index kStep = Index(kThreads) * Body::kItems;
  typename Body::Registers registers[batch<Body>()];
  char* target[batch<Body>()];
  unsigned whole = 0;
#pragma unroll
  for (int i = 0; i < batch<Body>(); ++i) {
    const Index item = at + i * kStep;
    if (item + Body::kItems > tile.end) continue;
    const Place<Index> place = place_of(header, tile, item, Body::kWidth);
    if (!movable(body, span, place)) continue;
    registers[i] = body.load(place.source, stride);
    target[i] = place.target;
    whole |= 1u << i;
  }
#pragma unroll
  for (int i = 0; i < batch<Body>(); ++i)
    if (whole >> i & 1) store(body, target[i], registers[i]);
  if (whole + 1 == 1u << batch<Body>()) return;
#pragma unroll 1
  for (int i = 0; i < batch<Body>(); ++i) {
    const Index item = at + i * kStep;
    if (whole >> i & 1 || item >= tile.end) continue;
    if constexpr (Body::kWritten == 1 && Body::kItems > 1 && Body::kRead <= 2)  // more need too many registers
      if (move_across(body, span, header, tile, item, stride)) continue;
    move_items(body, header, tile, item, stride);
  }
}

// Move the tile of a block.
template <class Body, class Index>
GPUSLICE_INLINE void walk(const Body& body, const Header<Index>& header, const Tile<Index>& tile) {
  using Stride = typename Signed<Index>::type;
  const Stride stride = Body::kStride ? Stride(Body::kStride) : header.source_stride[header.rank - 1];
  constexpr Index kStep = Index(kThreads) * Body::kItems * batch<Body>();
  constexpr Index kSpan = kStep - Index(kThreads - 1) * Body::kItems;
  const Span<Index> span = span_of(header, tile, Body::kSourceWidth);
  Index at = tile.begin + items_ahead<Body>(header, tile) + threadIdx.x * Body::kItems;
  if (batch<Body>() > 1 && axis(header, tile, header.rank - 1).value >= kSpan)
    for (; at + kSpan <= tile.end; at += kStep)
      if (!move_in_run(body, span, place_of(header, tile, at, Body::kWidth), stride)) break;
  for (; at < tile.end; at += kStep) move_apart(body, span, header, tile, at, stride);
  at = tile.begin + threadIdx.x;
  if (threadIdx.x < items_ahead<Body>(header, tile) && at < tile.end) {
    const Place<Index> place = place_of(header, tile, at, Body::kWidth);
    body.item(place.target, place.source);
  }
}

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
