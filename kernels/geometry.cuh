// The parameters of a launch, the tile of a block, and the place of an item.
//
// A part is one view and its target. The parts of a launch have the same strides, and differ in the extent of at most
// one axis, so that all pieces of a split are one launch. Axis 0 is the outermost; the last axis is the run, along
// which the target is contiguous. The parameters are passed by value: nothing is uploaded, and a captured CUDA graph
// keeps a copy of them.
#pragma once

#include "config.h"
#include "divisor.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

template <class Index>
struct Signed;
template <>
struct Signed<unsigned> {
  using type = int;
};
template <>
struct Signed<unsigned long long> {
  using type = long long;
};

// In which order blocks take the tiles.
enum Order : unsigned {
  kByPart,  // all tiles of a part, then those of the next; first_tile says where each part begins
  kByTile,  // the first tile of every part, then the second ones, so that neighbours read the same source rows
};

template <class Index>
struct Header {
  unsigned rank;
  unsigned parts;
  unsigned capacity;  // entries of each table: one per part; for kPlanes, which has one part, one per channel
  unsigned varying;   // the axis whose extent differs between parts; kMaxRank if all are equal
  unsigned order;
  unsigned flat;    // whether each target is contiguous throughout, so that an item's place is its number
  unsigned stream;  // whether targets are too large to be worth keeping in a cache; only the host asks
  Index tile;       // items (pixels) of a tile (kByPart), or entries of axis 0 (kByTile)
  Index tiles;      // tiles of the first part
  Divisor<Index> shape[kMaxRank];
  typename Signed<Index>::type source_stride[kMaxRank];  // bytes
  typename Signed<Index>::type target_stride[kMaxRank];  // bytes
};

// The header and its tables, each with one entry per part.
template <class Index, int Capacity>
struct Parameters {
  Header<Index> header;
  unsigned long long source[Capacity];
  unsigned long long target[Capacity];
  Divisor<Index> extent[Capacity];
  Index first_tile[Capacity];
};

// gpuslice/engine/plan/layout.py writes these bytes.
#if !defined(__CUDACC_RTC__)  // which has no offsetof
static_assert(__builtin_offsetof(Parameters<unsigned, 1>, source) == kHeaderBytes32);
static_assert(__builtin_offsetof(Parameters<unsigned long long, 1>, source) == kHeaderBytes64);
#endif
static_assert(sizeof(Parameters<unsigned, 2>) == kHeaderBytes32 + 2 * (16 + 3 * 4));
static_assert(sizeof(Parameters<unsigned long long, 2>) == kHeaderBytes64 + 2 * (16 + 3 * 8));

// A share of one part, for one block.
template <class Index>
struct Tile {
  const char* source;  // the first item of the part
  char* target;
  Divisor<Index> extent;  // of the part along the varying axis
  Index number;           // of the tile in its part
  Index begin;            // the tile's items are [begin, end) of the part, in the target's order
  Index end;
};

template <class Index>
GPUSLICE_INLINE Divisor<Index> axis(const Header<Index>& header, const Tile<Index>& tile, unsigned k) {
  return k == header.varying ? tile.extent : header.shape[k];
}

// Return a tile of a part by its number.
template <class Index, class Tables>
GPUSLICE_INLINE Tile<Index> tile_at(const Header<Index>& header, const Tables& p, Index part, Index number) {
  Tile<Index> tile{reinterpret_cast<const char*>(p.source[part]),
                   reinterpret_cast<char*>(p.target[part]),
                   p.extent[part],
                   number,
                   0,
                   0};
  Index inner = 1;
#pragma unroll 1
  for (unsigned k = 1; k < header.rank; ++k) inner *= axis(header, tile, k).value;
  const Index count = inner * axis(header, tile, 0).value;
  const Index items = header.order == kByTile ? header.tile * inner : header.tile;
  tile.begin = number * items;
  tile.end = tile.begin + items < count ? tile.begin + items : count;
  return tile;
}

// Return the tile of a block. The binary search over first_tile takes the same number of steps in every thread.
template <class Index, class Tables>
GPUSLICE_INLINE Tile<Index> tile_of(const Header<Index>& header, const Tables& p, Index block) {
  Index part = 0, number;
  if (header.order == kByTile) {
    number = block / header.parts;
    part = block - number * header.parts;
  } else {
    for (Index low = 0, high = header.parts; high - low > 1;) {
      const Index middle = (low + high) / 2;
      (p.first_tile[middle] <= block ? low : high) = middle;
      part = low;
    }
    number = block - p.first_tile[part];
  }
  return tile_at(header, p, part, number);  // one call: two would compile all that follows twice
}

// Where an item is, in bytes from the first item of its part, and where in its run.
template <class Index>
struct Place {
  typename Signed<Index>::type source;
  typename Signed<Index>::type target;
  Index done;  // items of the run before this one
  Index room;  // items of the run from this one on
};

// Find the places of several items, which share what is read and computed per axis.
template <int Count, class Index>
GPUSLICE_INLINE void find_places(const Header<Index>& header, const Tile<Index>& tile, const Index (&item)[Count],
                                 int width, Place<Index> (&place)[Count]) {
  using Stride = typename Signed<Index>::type;
  Index rest[Count];
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    rest[i] = item[i];
    place[i] = {0, header.flat ? static_cast<Stride>(item[i] * width) : 0, 0, 0};
  }
#pragma unroll 1
  for (unsigned k = header.rank - 1;; --k) {
    const Divisor<Index> extent = axis(header, tile, k);
    // Targets of a flat launch have strides of 0.
    const Stride source_stride = header.source_stride[k], target_stride = header.target_stride[k];
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      const Index outer = k ? divide(rest[i], extent) : 0;
      const Index at = rest[i] - outer * extent.value;
      if (k == header.rank - 1) {
        place[i].done = at;
        place[i].room = extent.value - at;
      }
      place[i].source += static_cast<Stride>(at) * source_stride;
      place[i].target += static_cast<Stride>(at) * target_stride;
      rest[i] = outer;
    }
    if (k == 0) break;
  }
}

template <class Index>
GPUSLICE_INLINE Place<Index> place_of(const Header<Index>& header, const Tile<Index>& tile, Index item, int width) {
  Place<Index> place[1];
  find_places<1>(header, tile, {item}, width, place);
  return place[0];
}

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
