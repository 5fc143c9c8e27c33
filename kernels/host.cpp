// The host library: every kernel behind one C function, compiled for several instruction sets in one binary.
//
// gpuslice_copy runs the blocks [first, last) of a launch in the calling thread. Launches with enough to do are dealt
// to threads by gpuslice_copy_threaded.

#include <exception>
#include <thread>
#include <vector>

#include "host_walk.h"
#include "pixels.cuh"
#include "rows.cuh"
#include "tiles.cuh"

#if defined(__x86_64__) && !defined(GPUSLICE_ONE_TARGET)
#define GPUSLICE_CLONES __attribute__((target_clones("default", "arch=x86-64-v3"), flatten))
#else
#define GPUSLICE_CLONES
#endif

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
GPUSLICE_INLINE void walk(const Body& body, const Launch& launch, Index first, Index last) {
  for (Index block = first; block < last; ++block) {
    const Tile<Index> tile = tile_of(launch.header, launch, block);
    if (launch.header.stream)
      HostWalk<Body, Index, true>(body, launch.header, tile).move();
    else
      HostWalk<Body, Index, false>(body, launch.header, tile).move();
  }
}

template <int Width, bool Narrow>
GPUSLICE_INLINE void rows(int step, const Launch& launch, Index first, Index last) {
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
GPUSLICE_INLINE void planes(bool backward, const Launch& launch, Index first, Index last) {
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
GPUSLICE_INLINE void rearranged(bool backward, const Launch& launch, Index first, Index last) {
  if (backward)
    walk(Rearranged<Host, Index, Width, Channels, true, false>{}, launch, first, last);
  else
    walk(Rearranged<Host, Index, Width, Channels, false, true>{}, launch, first, last);
}

template <int Width>
GPUSLICE_INLINE void tiles(const Launch& launch, Index first, Index last) {
  using Body = Tiles<Host, Index, Width>;
  alignas(64) char memory[Body::kMemory];
  for (Index block = first; block < last; ++block)
    Body::block(launch.header, tile_of(launch.header, launch, block), memory);
}

template <int Width>
GPUSLICE_INLINE void pixels(bool apart, int channels, bool backward, const Launch& launch, Index first, Index last) {
  if (apart) {
    if (channels == 2) return planes<Width, 2>(backward, launch, first, last);
    if (channels == 3) return planes<Width, 3>(backward, launch, first, last);
    return planes<Width, 4>(backward, launch, first, last);
  }
  if (channels == 2) return rearranged<Width, 2>(backward, launch, first, last);
  if (channels == 3) return rearranged<Width, 3>(backward, launch, first, last);
  return rearranged<Width, 4>(backward, launch, first, last);
}

GPUSLICE_CLONES void run_rows(int width, int step, const Launch& launch, Index first, Index last) {
  if (width == 1) return rows<1, true>(step, launch, first, last);
  if (width == 2) return rows<2, true>(step, launch, first, last);
  if (width == 4) return rows<4, false>(step, launch, first, last);
  if (width == 8) return rows<8, false>(step, launch, first, last);
  return rows<16, false>(step, launch, first, last);
}

GPUSLICE_CLONES void run_pixels(int width, bool apart, int channels, bool backward, const Launch& launch, Index first,
                                Index last) {
  if (width == 1) return pixels<1>(apart, channels, backward, launch, first, last);
  if (width == 2) return pixels<2>(apart, channels, backward, launch, first, last);
  return pixels<4>(apart, channels, backward, launch, first, last);
}

GPUSLICE_CLONES void run_tiles(int width, const Launch& launch, Index first, Index last) {
  if (width == 1) return tiles<1>(launch, first, last);
  if (width == 2) return tiles<2>(launch, first, last);
  if (width == 4) return tiles<4>(launch, first, last);
  if (width == 8) return tiles<8>(launch, first, last);
  return tiles<16>(launch, first, last);
}

// Kinds and their variants, as engine/host.py numbers them.
enum Kind { kRows, kPlanes, kRearranged, kTiles };

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

}  // namespace
}  // namespace gpuslice

extern "C" {

// Run a launch of `blocks` blocks on up to `threads` threads, the calling one among them.
__attribute__((visibility("default"))) void gpuslice_copy(int kind, int width, int variant, const void* packed,
                                                          unsigned long long blocks, int threads) {
  using namespace gpuslice;
  if (threads <= 1 || blocks <= 1) return run_blocks(kind, width, variant, packed, 0, blocks);
  std::vector<std::thread> workers;
  const Index share = (blocks + threads - 1) / threads;
  Index started = blocks;  // the blocks from here on have a thread; the last shares are given away first
  try {
    workers.reserve(threads - 1);
    for (int i = threads - 1; i > 0; --i) {
      const Index first = i * share;
      if (first >= started) continue;
      workers.emplace_back(run_blocks, kind, width, variant, packed, first, started);
      started = first;
    }
  } catch (const std::exception&) {  // no more threads to be had: the calling one does what is left
  }
  run_blocks(kind, width, variant, packed, 0, started);
  for (std::thread& worker : workers) worker.join();
}

// The instruction set that this processor runs; empty where it lacks what the library was compiled for.
__attribute__((visibility("default"))) const char* gpuslice_instruction_set() {
#if defined(__x86_64__) && !defined(GPUSLICE_ONE_TARGET)
  if (__builtin_cpu_supports("x86-64-v3")) return "x86-64-v3";
  return __builtin_cpu_supports("x86-64-v2") ? "x86-64-v2" : "";  // the build's own baseline
#endif
  return "baseline";
}
}
