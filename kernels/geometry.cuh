// What a launch is told: the shape of its views and, a part, where they begin.
//
// A part is one view and where its items go. Parts of a launch share strides and shape but for the extent of one axis,
// so that the pieces of a split, even or not, are one launch. Axis 0 is outermost; the last axis is the run, along
// which the target is contiguous. Everything comes by value: nothing is uploaded, and a captured launch replays what it
// held.
#pragma once

namespace gpuslice {

constexpr int kMaxRank = 8;
constexpr int kVectorBytes = 16;
constexpr int kLineBytes = 64;  // of a host's caches; two sectors of a GPU's

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

// Division by a number known to the planner: (mulhi(n, magic) + n) >> ceil(log2(divisor)), for n below half the range.
template <class Index>
struct Divisor {
  Index value;
  Index magic;
};

// How blocks are dealt to parts.
enum Order : unsigned {
  kByPart,  // all tiles of a part, then those of the next: first_tile says where each begins
  kByTile,  // the first tile of every part, then the second ones: neighbours read the same source rows
};

template <class Index>
struct Header {
  unsigned rank;
  unsigned parts;
  unsigned capacity;  // entries of the tables, which hold parts, or for Planes the channels of the one part
  unsigned varying;   // the axis whose extent each part has of its own
  unsigned order;
  unsigned flat;    // whether targets are contiguous throughout, so that an item's place is its number
  unsigned stream;  // whether targets are too large to be worth keeping in a cache
  Index tile;       // items a block (kByPart), or entries of axis 0 (kByTile)
  Index tiles;      // tiles a part (kByTile)
  Divisor<Index> shape[kMaxRank];
  typename Signed<Index>::type source_stride[kMaxRank];  // bytes
  typename Signed<Index>::type target_stride[kMaxRank];  // bytes
};

// The tables behind a header, each with one entry a part.
template <class Index, int Capacity>
struct Parameters {
  Header<Index> header;
  unsigned long long source[Capacity];
  unsigned long long target[Capacity];
  Divisor<Index> extent[Capacity];
  Index first_tile[Capacity];
};

// One part as a body sees it: the header with this part's extent and addresses, and the items of its tile.
template <class Index>
struct Tile {
  const char* source;
  char* target;
  Divisor<Index> extent;
  Index number;  // of the tile in its part
  Index begin;
  Index end;
};

template <class Index>
GPUSLICE_INLINE Divisor<Index> axis(const Header<Index>& header, const Tile<Index>& tile, unsigned k) {
  return k == header.varying ? tile.extent : header.shape[k];
}

// A tile of a part, by its number there.
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

// The tile of a block. The binary search over first_tile takes as many steps in every thread.
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
  return tile_at(header, p, part, number);  // once, or all that follows is compiled twice
}

// Where an item of a part is, and how many items its run has before it and from it on.
template <class Index>
struct Place {
  const char* source;
  char* target;
  Index done;
  Index room;
};

template <class Executor, class Index, int Width>
GPUSLICE_INLINE Place<Index> place_of(const Header<Index>& header, const Tile<Index>& tile, Index item) {
  using Stride = typename Signed<Index>::type;
  Place<Index> place{tile.source, tile.target, 0, 0};
  Index rest = item;
#pragma unroll 1
  for (unsigned k = header.rank - 1;; --k) {
    const Divisor<Index> extent = axis(header, tile, k);
    const Index outer = k ? Executor::divide(rest, extent) : 0;
    const Index at = rest - outer * extent.value;
    if (k == header.rank - 1) {
      place.done = at;
      place.room = extent.value - at;
    }
    place.source += static_cast<Stride>(at) * header.source_stride[k];
    if (!header.flat) place.target += static_cast<Stride>(at) * header.target_stride[k];
    rest = outer;
    if (k == 0) break;
  }
  if (header.flat) place.target += item * Width;
  return place;
}

}  // namespace gpuslice
