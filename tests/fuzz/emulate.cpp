// Runs the CUDA kernels of kernels/copy.cu on a CPU, by tests/cuda_on_cpu/device/block.h. Built by tests/fuzz/build.py.

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "block.h"
#include "device.h"
// After device.h, which stands in for what NVRTC knows by itself.
#include "copy.cu"

namespace emulated {
using Kernel = void (*)(const void*);
using Key = std::tuple<int, int, int, int, int>;  // index bits, capacity, kind, width, variant
std::map<Key, Kernel>& kernels() {
  static std::map<Key, Kernel> table;
  return table;
}

template <auto Function, class Parameters>
void call(const void* packed) {
  Function(*static_cast<const Parameters*>(packed));
}

template <class Index, int Capacity, int Width, int Variant>
void add_pixels() {
  using P = gpuslice::Parameters<Index, Capacity>;
  const int bits = sizeof(Index) * 8;
  kernels()[{bits, Capacity, 1, Width, Variant}] = call<gpuslice::planes<Index, Capacity, Width, Variant>, P>;
  kernels()[{bits, Capacity, 2, Width, Variant}] = call<gpuslice::rearranged<Index, Capacity, Width, Variant>, P>;
}

template <class Index, int Capacity, int Width, int... Variants>
void add_rows() {
  using P = gpuslice::Parameters<Index, Capacity>;
  ((kernels()[{sizeof(Index) * 8, Capacity, 0, Width, Variants}] =
        call<gpuslice::rows<Index, Capacity, Width, Variants>, P>),
   ...);
}

template <class Index, int Capacity, int Width>
void add_tiles() {
  using P = gpuslice::Parameters<Index, Capacity>;
  kernels()[{sizeof(Index) * 8, Capacity, 3, Width, 0}] = call<gpuslice::tiles<Index, Capacity, Width, 0>, P>;
}

template <class Index, int Capacity>
void add_many() {
  add_rows<Index, Capacity, 1, 0, 1, -1, 2, -2, 3, -3, 4, -4>();
  add_rows<Index, Capacity, 2, 0, 1, -1, 2, -2, 3, -3, 4, -4>();
  add_rows<Index, Capacity, 4, 0, 1, -1>();
  add_rows<Index, Capacity, 8, 0, 1, -1>();
  add_rows<Index, Capacity, 16, 0, 1, -1>();
}

template <class Index, int Capacity>
void add_few() {
  add_many<Index, Capacity>();
  add_tiles<Index, Capacity, 1>();
  add_tiles<Index, Capacity, 2>();
  add_tiles<Index, Capacity, 4>();
  add_tiles<Index, Capacity, 8>();
  add_tiles<Index, Capacity, 16>();
  add_pixels<Index, Capacity, 1, 2>(), add_pixels<Index, Capacity, 1, -2>();
  add_pixels<Index, Capacity, 1, 3>(), add_pixels<Index, Capacity, 1, -3>();
  add_pixels<Index, Capacity, 1, 4>(), add_pixels<Index, Capacity, 1, -4>();
  add_pixels<Index, Capacity, 2, 2>(), add_pixels<Index, Capacity, 2, -2>();
  add_pixels<Index, Capacity, 2, 3>(), add_pixels<Index, Capacity, 2, -3>();
  add_pixels<Index, Capacity, 2, 4>(), add_pixels<Index, Capacity, 2, -4>();
  add_pixels<Index, Capacity, 4, 2>(), add_pixels<Index, Capacity, 4, -2>();
  add_pixels<Index, Capacity, 4, 3>(), add_pixels<Index, Capacity, 4, -3>();
  add_pixels<Index, Capacity, 4, 4>(), add_pixels<Index, Capacity, 4, -4>();
}

}  // namespace emulated

extern "C" {

// Run a kernel over its grid; 1 where there is no such kernel.
int emulate(int bits, int capacity, int kind, int width, int variant, const void* packed, unsigned blocks,
            unsigned seed) {
  using namespace emulated;
  if (kernels().empty()) {
    add_few<unsigned, 8>();
#ifndef EMULATE_FEW
    add_few<unsigned long long, 8>();
    add_few<unsigned, 1152>();
    add_few<unsigned long long, 800>();
#endif
  }
  const auto found = kernels().find({bits, capacity, kind, width, variant});
  if (found == kernels().end()) return 1;
  std::mt19937 random(seed);
  static Block runner;
  std::vector<Place> order = threads_of({gpuslice::kThreads, 1, 1});
  for (unsigned b = 0; b < blocks; ++b) {
    block = {b, 0, 0};
    std::shuffle(order.begin(), order.end(), random);
    runner.run(order, [&] { found->second(packed); });
  }
  return 0;
}

// Memory of exactly so many bytes, so that the sanitizer sees a byte before or after it being touched.
void* exact_alloc(size_t bytes) { return malloc(bytes); }
void exact_free(void* memory) { free(memory); }
}
