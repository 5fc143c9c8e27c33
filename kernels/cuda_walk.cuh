// How the threads of a CUDA block share the items of a tile, for the kernels whose bodies are Rows, PixelRows,
// Planes and Rearranged.
//
// A thread takes a few vectors that lie a block's width apart, so that neighbouring threads touch neighbouring bytes.
// It loads all of them before it uses the first, see cuda_batch.cuh. If they lie in one run, their place is found once;
// else the places of several are found together. A vector of a contiguous target that ends one run and begins the next
// is spliced from two. Everything else moves item by item.
// Limits: no shared memory and no barrier, so threads may leave early.
// Launch shape: 1-D blocks of kThreads threads, one per tile.
#pragma once

#include "cuda_batch.cuh"
#include "geometry.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

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
GPUSLICE_INLINE bool move_in_run(const Body& body, const Span<Index>& span, const Header<Index>& header,
                                 const Tile<Index>& tile, Index at, Stride stride) {
  constexpr Index kLast = (batch<Body>() - 1) * step<Body, Index>();
  const Place<Index> place = place_of(header, tile, at, Body::kWidth);
  if (place.room < kLast + Body::kItems) return false;
  const char* source = tile.source + place.source;
  char* target = tile.target + place.target;
  if (!storable(body, target) || !readable(body, span, source)) return false;
  if (!readable(body, span, source + static_cast<Stride>(kLast) * stride)) return false;
  if constexpr (Body::kRead == 0) {
    gather_batch(body, source, stride, target);
  } else {
    const Reading<Body> reading = reading_of(body, source);
    unsigned offsets = 0;
#pragma unroll
    for (int s = 0; s < Body::kSources; ++s) offsets |= reading.offset[s];
    if (sources_are_aligned<Body>() || offsets == 0)
      move_batch<false>(body, reading, target);
    else
      move_batch<true>(body, reading, target);
  }
  return true;
}

// Move the items of one vector that is not whole: the end of a run and the beginning of the next, or the end of a tile.
template <class Body, class Index, class Stride>
GPUSLICE_INLINE void move_items(const Body& body, const Header<Index>& header, const Tile<Index>& tile, Index item,
                                Stride stride) {
  const Index end = item + Body::kItems < tile.end ? item + Body::kItems : tile.end;
  Place<Index> place{0, 0, 0, 0};
#pragma unroll 1
  for (;;) {
    if (!place.room) place = place_of(header, tile, item, Body::kWidth);
    body.item(tile.target + place.target, tile.source + place.source);
    if (++item >= end) return;
    --place.room;
    place.source += stride;
    place.target += Body::kWidth;
  }
}

// Complete the vectors of a contiguous target that end one run and begin the next, a bit of `across` for each: each is
// spliced from the last whole vector of the one, which was loaded, and the first of the other. Return a bit for each
// that could be completed.
template <class Body, class Index, class Stride, int Count>
GPUSLICE_INLINE unsigned splice_runs(const Body& body, const Span<Index>& span, const Header<Index>& header,
                                     const Tile<Index>& tile, Index at, unsigned rooms, unsigned across, Stride stride,
                                     typename Body::Registers (&registers)[Count]) {
  Index begin[Count];
  Place<Index> place[Count];
#pragma unroll
  for (int i = 0; i < Count; ++i) begin[i] = across >> i & 1 ? at + i * step<Body, Index>() + (rooms >> 4 * i & 15) : 0;
  find_places(header, tile, begin, Body::kWidth, place);
  unsigned wanted = 0;
#pragma unroll
  for (int i = 0; i < Count; ++i)
    if (across >> i & 1 && readable(body, span, tile.source + place[i].source)) wanted |= 1u << i;
  typename Body::Registers next[Count];
  load_each<kLoadedMore>(body, tile.source, place, wanted, stride, next);
#pragma unroll
  for (int i = 0; i < Count; ++i)
    if (wanted >> i & 1)
      registers[i].vector[0] =
          spliced(registers[i].vector[0], next[i].vector[0], (Body::kItems - (rooms >> 4 * i & 15)) * Body::kWidth);
  return wanted;
}

// Move those of some vectors that can be loaded and stored whole, wherever each is. Return a bit for each.
template <int Count, class Body, class Index, class Stride>
GPUSLICE_INLINE unsigned move_whole(const Body& body, const Span<Index>& span, const Header<Index>& header,
                                    const Tile<Index>& tile, Index at, Stride stride) {
  constexpr bool kSplices = Body::kWritten == 1 && Body::kItems > 1;
  const bool splices = kSplices && header.flat && axis(header, tile, header.rank - 1).value >= Body::kItems;
  Index item[Count];
  Place<Index> place[Count];
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    item[i] = at + i * step<Body, Index>();
    if (item[i] >= tile.end) item[i] = tile.end - 1;
  }
  find_places(header, tile, item, Body::kWidth, place);
  unsigned whole = 0, across = 0, rooms = 0;
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    const Index room = place[i].room;
    const bool ends = room < Body::kItems;
    if (kSplices && ends) place[i].source -= static_cast<Stride>(Body::kItems - room) * stride;
    if (at + i * step<Body, Index>() + Body::kItems > tile.end || (ends && !splices)) continue;
    if (!storable(body, tile.target + place[i].target) || !readable(body, span, tile.source + place[i].source))
      continue;
    whole |= 1u << i;
    if (!ends) continue;
    across |= 1u << i;
    rooms |= static_cast<unsigned>(room) << 4 * i;
  }
  typename Body::Registers registers[Count];
  load_each<kLoaded>(body, tile.source, place, whole, stride, registers);
  if constexpr (kSplices)
    if (across) whole ^= across ^ splice_runs(body, span, header, tile, at, rooms, across, stride, registers);
#pragma unroll
  for (int i = 0; i < Count; ++i)
    if (whole >> i & 1) store(body, tile.target + place[i].target, registers[i]);
  return whole;
}

// Move a batch of vectors that each have a place of their own, and may have to go item by item.
template <class Body, class Index, class Stride>
GPUSLICE_INLINE void move_apart(const Body& body, const Span<Index>& span, const Header<Index>& header,
                                const Tile<Index>& tile, Index at, Stride stride) {
  constexpr int kBatch = batch<Body>(), kApart = apart<Body, Index>();
  unsigned whole = 0;
#pragma unroll 1  // else the compiler would load more of them together than there are registers for
  for (int i = 0; i < kBatch; i += kApart)
    whole |= move_whole<kApart>(body, span, header, tile, at + i * step<Body, Index>(), stride) << i;
  if (whole + 1 == 1u << kBatch) return;
#pragma unroll 1
  for (int i = 0; i < kBatch; ++i) {
    const Index from = at + i * step<Body, Index>();
    if (!(whole >> i & 1) && from < tile.end) move_items(body, header, tile, from, stride);
  }
}

// Move the tile of a block.
template <class Body, class Index>
GPUSLICE_INLINE void walk(const Body& body, const Header<Index>& header, const Tile<Index>& tile) {
  using Stride = typename Signed<Index>::type;
  const Stride stride = Body::kStride ? Stride(Body::kStride) : header.source_stride[header.rank - 1];
  constexpr Index kStep = step<Body, Index>() * batch<Body>();
  constexpr Index kSpan = kStep - Index(kThreads - 1) * Body::kItems;
  const Span<Index> span = span_of(header, tile, Body::kSourceWidth);
  const Index ahead = items_ahead<Body>(header, tile);
  Index at = tile.begin + threadIdx.x;
  if (threadIdx.x < ahead && at < tile.end) {
    const Place<Index> place = place_of(header, tile, at, Body::kWidth);
    body.item(tile.target + place.target, tile.source + place.source);
  }
  at = tile.begin + ahead + threadIdx.x * Body::kItems;
  if (batch<Body>() > 1 && axis(header, tile, header.rank - 1).value >= kSpan)
    for (; at + kSpan <= tile.end; at += kStep)
      if (!move_in_run(body, span, header, tile, at, stride)) break;
  for (; at < tile.end; at += kStep) move_apart(body, span, header, tile, at, stride);
}

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
