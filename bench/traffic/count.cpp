// Runs blocks of kernels of kernels/copy.cu on a CPU and counts what their warps ask of global memory.
//
// A request is what up to 32 consecutive threads ask at once: the k-th access of each at one place in the code in one
// round of the loop over a thread's vectors. An access is at most 16 bytes and aligned, so that it lies in one sector
// of 32 bytes.

#include <cstddef>
#include <cstdint>

namespace traffic {
void seen(const void* address, size_t bytes, bool store);
unsigned round;  // of the running thread's loop over vectors; build.py makes the kernels say it
}  // namespace traffic

#define GPUSLICE_ON_LOAD(address) traffic::seen(address, sizeof *(address), false)
#define GPUSLICE_ON_STORE(address) traffic::seen(address, sizeof *(address), true)
// Each place in the code is one of its own.
#define __forceinline__ inline __attribute__((always_inline))

#include <algorithm>
#include <array>
#include <vector>

#include "block.h"
#include "device.h"
// After device.h, which stands in for what NVRTC knows by itself.
#include "copy.cu"

namespace traffic {

constexpr unsigned kWarp = 32, kSector = 32;

struct Access {
  uintptr_t place;
  uintptr_t address;
  unsigned bytes;
  bool store;
};

// All parts of a copy, with contiguous targets in ascending order. Filled in by model.py, as are the next two.
struct Views {
  uint64_t low, high;  // where sources and targets are; all other memory is shared memory
  uint64_t width;
  uint64_t parts, rank;
  const uint64_t *source, *target;
  const int64_t *shape, *strides;  // rank numbers a part
};

struct Counts {
  uint64_t bytes;                                  // written
  uint64_t wanted;                                 // sectors of the source that hold an item that a block writes
  uint64_t loaded, load_requests, load_requested;  // sectors a block, requests, sectors a request: all summed up
  uint64_t stored, store_requests, store_requested;
  uint64_t missed;  // wanted sectors that were not loaded: none, or the model is wrong
};

using Kernel = void (*)(const void*);

template <auto Function, class Parameters>
void call(const void* packed) {
  Function(*static_cast<const Parameters*>(packed));
}

const Kernel kKernels[] = {
#include "kernels.inc"
};

const Views* views;
std::vector<Access> accesses[gpuslice::kThreads];

__attribute__((noinline)) void seen(const void* address, size_t bytes, bool store) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  if (at < views->low || at >= views->high) return;
  const auto place = reinterpret_cast<uintptr_t>(__builtin_return_address(0)) << 8 | round;
  accesses[emulated::thread.x].push_back({place, at, static_cast<unsigned>(bytes), store});
}

// The address that an item of a target comes from.
uint64_t source_of(uint64_t target) {
  const size_t part = std::upper_bound(views->target, views->target + views->parts, target) - views->target - 1;
  int64_t rest = static_cast<int64_t>((target - views->target[part]) / views->width);
  uint64_t source = views->source[part];
  for (size_t k = views->rank; k-- > 0;) {
    const int64_t extent = views->shape[part * views->rank + k];
    source += rest % extent * views->strides[part * views->rank + k];
    rest /= extent;
  }
  return source;
}

using Sectors = std::vector<uint64_t>;

void sort_unique(Sectors& sectors) {
  std::sort(sectors.begin(), sectors.end());
  sectors.erase(std::unique(sectors.begin(), sectors.end()), sectors.end());
}

void count_warp(unsigned first, Counts& counts) {
  std::vector<std::array<uint64_t, 4>> asked;  // is it a store, the place, which time there, the sector
  for (unsigned lane = first; lane < first + kWarp && lane < gpuslice::kThreads; ++lane) {
    std::vector<std::pair<uintptr_t, uint64_t>> times;
    for (const Access& one : accesses[lane]) {
      auto found =
          std::find_if(times.begin(), times.end(), [&](const auto& entry) { return entry.first == one.place; });
      if (found == times.end()) found = times.insert(times.end(), {one.place, 0});
      asked.push_back({one.store, one.place, found->second++, one.address / kSector});
    }
  }
  std::sort(asked.begin(), asked.end());
  asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  for (size_t i = 0; i < asked.size(); ++i) {
    const bool is_new = !i || !std::equal(asked[i].begin(), asked[i].end() - 1, asked[i - 1].begin());
    (asked[i][0] ? counts.store_requests : counts.load_requests) += is_new;
    ++(asked[i][0] ? counts.store_requested : counts.load_requested);
  }
}

void count_block(Counts& counts) {
  Sectors loaded, stored, wanted;
  for (const auto& of_thread : accesses)
    for (const Access& one : of_thread) {
      (one.store ? stored : loaded).push_back(one.address / kSector);
      if (!one.store) continue;
      counts.bytes += one.bytes;
      for (uint64_t at = one.address; at < one.address + one.bytes; at += views->width) {
        const uint64_t source = source_of(at);
        wanted.push_back(source / kSector);
        wanted.push_back((source + views->width - 1) / kSector);
      }
    }
  for (Sectors* sectors : {&loaded, &stored, &wanted}) sort_unique(*sectors);
  counts.wanted += wanted.size();
  counts.loaded += loaded.size();
  counts.stored += stored.size();
  for (uint64_t sector : wanted) counts.missed += !std::binary_search(loaded.begin(), loaded.end(), sector);
  for (unsigned first = 0; first < gpuslice::kThreads; first += kWarp) count_warp(first, counts);
}

}  // namespace traffic

extern "C" void count_traffic(int kernel, const void* packed, const unsigned* blocks, unsigned count,
                              const traffic::Views* views, traffic::Counts* counts) {
  static emulated::Block runner;
  traffic::views = views;
  const std::vector<emulated::Place> order = emulated::threads_of({gpuslice::kThreads, 1, 1});
  for (unsigned i = 0; i < count; ++i) {
    for (auto& of_thread : traffic::accesses) of_thread.clear();
    emulated::block = {blocks[i], 0, 0};
    runner.run(order, [&] { traffic::kKernels[kernel](packed); });
    traffic::count_block(*counts);
  }
}
