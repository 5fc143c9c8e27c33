// The host's kernels for one instruction set. Compiled once a set, with the set's flags and a namespace of its own, so
// that no function of one ends up in another; host.cpp chooses.

#include "host_walk.h"
#include "pixels.cuh"
#include "rows.cuh"
#include "tiles.cuh"

namespace gpuslice {
namespace {

using Index = unsigned long long;

// A launch as the planner packs it: the header, and tables as long as there are parts.
struct Launch {
  const Header<Index>& header;
  const unsigned long long* source;
  const unsigned long long* target;
  const Divisor<Index>* extent;
  const Index* first_tile;

  explicit Launch(const void* packed) : header(*static_cast<const Header<Index>*>(packed)) {
    source = reinterpret_cast<const unsigned long long*>(&header + 1);
    target = source + header.capacity;
    extent = reinterpret_cast<const Divisor<Index>*>(target + header.capacity);
    first_tile = reinterpret_cast<const Index*>(extent + header.capacity);
  }
};

template <class Body>
void walk(const Body& body, const Launch& launch, Index first, Index last) {
  const Header<Index>& header = launch.header;
  HostWalk<Body, Index> walk(body, header);
  if (header.order == kByPart) {
    for (Index block = first; block < last; ++block) walk.move(tile_of(header, launch, block));
    return;
  }
  while (first < last) {
    const Index number = first / header.parts, part = first % header.parts, left = last - first;
    const Index end = header.parts - part < left ? header.parts : part + left;
    walk.move_beside(launch, part, end, number);
    first += end - part;
  }
}

template <int Width, bool Narrow>
void rows(int step, const Launch& launch, Index first, Index last) {
  if (step == 1) return walk(Rows<Host, Index, Width, 1>{}, launch, first, last);
  if (step == -1) return walk(Rows<Host, Index, Width, -1>{}, launch, first, last);
  if constexpr (Narrow) {
    if (step == 2) return walk(Rows<Host, Index, Width, 2>{}, launch, first, last);
    if (step == -2) return walk(Rows<Host, Index, Width, -2>{}, launch, first, last);
    if (step == 3) return walk(Rows<Host, Index, Width, 3>{}, launch, first, last);
    if (step == -3) return walk(Rows<Host, Index, Width, -3>{}, launch, first, last);
    if (step == 4) return walk(Rows<Host, Index, Width, 4>{}, launch, first, last);
    if (step == -4) return walk(Rows<Host, Index, Width, -4>{}, launch, first, last);
  }
  walk(Rows<Host, Index, Width, 0>{}, launch, first, last);
}

template <int Width, int Channels>
void planes(bool backward, const Launch& launch, Index first, Index last) {
  long long plane[Channels];
  for (int i = 0; i < Channels; ++i) plane[i] = static_cast<long long>(launch.target[i] - launch.target[0]);
  const auto run = [&](auto body) {
    for (int i = 0; i < Channels; ++i) body.plane[i] = plane[i];
    walk(body, launch, first, last);
  };
  if (backward)
    run(Planes<Host, Index, Width, Channels, true>{});
  else
    run(Planes<Host, Index, Width, Channels, false>{});
}

template <int Width, int Channels>
void rearranged(bool backward, const Launch& launch, Index first, Index last) {
  if (backward)
    walk(Rearranged<Host, Index, Width, Channels, true, false>{}, launch, first, last);
  else
    walk(Rearranged<Host, Index, Width, Channels, false, true>{}, launch, first, last);
}

template <int Width>
void tiles(const Launch& launch, Index first, Index last) {
  using Body = Tiles<Host, Index, Width>;
  alignas(64) char memory[Body::kMemory];
  for (Index block = first; block < last; ++block)
    Body::block(launch.header, tile_of(launch.header, launch, block), memory);
}

template <int Width>
void pixels(bool apart, int channels, bool backward, const Launch& launch, Index first, Index last) {
  if (apart) {
    if (channels == 2) return planes<Width, 2>(backward, launch, first, last);
    if (channels == 3) return planes<Width, 3>(backward, launch, first, last);
    return planes<Width, 4>(backward, launch, first, last);
  }
  if (channels == 2) return rearranged<Width, 2>(backward, launch, first, last);
  if (channels == 3) return rearranged<Width, 3>(backward, launch, first, last);
  return rearranged<Width, 4>(backward, launch, first, last);
}

void run_rows(int width, int step, const Launch& launch, Index first, Index last) {
  if (width == 1) return rows<1, true>(step, launch, first, last);
  if (width == 2) return rows<2, true>(step, launch, first, last);
  if (width == 4) return rows<4, false>(step, launch, first, last);
  if (width == 8) return rows<8, false>(step, launch, first, last);
  return rows<16, false>(step, launch, first, last);
}

void run_pixels(int width, bool apart, int channels, bool backward, const Launch& launch, Index first, Index last) {
  if (width == 1) return pixels<1>(apart, channels, backward, launch, first, last);
  if (width == 2) return pixels<2>(apart, channels, backward, launch, first, last);
  return pixels<4>(apart, channels, backward, launch, first, last);
}

void run_tiles(int width, const Launch& launch, Index first, Index last) {
  if (width == 1) return tiles<1>(launch, first, last);
  if (width == 2) return tiles<2>(launch, first, last);
  if (width == 4) return tiles<4>(launch, first, last);
  if (width == 8) return tiles<8>(launch, first, last);
  return tiles<16>(launch, first, last);
}

// Kinds and their variants, as engine/host.py numbers them.
enum Kind { kRows, kPlanes, kRearranged, kTiles };

}  // namespace

// Runs the blocks [first, last) of a launch.
void run_blocks(int kind, int width, int variant, const void* packed, Index first, Index last) {
  const Launch launch(packed);
  const int channels = variant < 0 ? -variant : variant;
  if (kind == kRows)
    run_rows(width, variant, launch, first, last);
  else if (kind == kTiles)
    run_tiles(width, launch, first, last);
  else
    run_pixels(width, kind == kPlanes, channels, variant < 0, launch, first, last);
#if defined(__SSE2__)
  if (launch.header.stream) _mm_sfence();  // streamed stores are not ordered before what comes next
#endif
}

}  // namespace gpuslice
