// Runs the CUDA kernels of kernels.cpp on a CPU, by tests/cuda_on_cpu/device/block.h. Built by tests/fuzz/build.py.

#include "emulate.h"

#include <algorithm>
#include <cstdlib>
#include <random>

#include "block.h"

namespace emulated {
namespace {

Kernel find(int bits, int capacity, unsigned number) {
  for (const KernelTable& table : kernel_tables())
    if (table.bits == bits && table.capacity == capacity) return table.find(number);
  return nullptr;
}

}  // namespace
}  // namespace emulated

extern "C" {

// Return whether a kernel was compiled, by its position in the list of kernels/shared.h.
int has_kernel(int bits, int capacity, unsigned number) { return emulated::find(bits, capacity, number) != nullptr; }

// Run a kernel over its grid, each block's threads in a random order.
void emulate(int bits, int capacity, unsigned number, const void* parameters, unsigned blocks, unsigned seed) {
  using namespace emulated;
  const Kernel kernel = find(bits, capacity, number);
  std::mt19937 random(seed);
  static Block runner;
  std::vector<Place> order = threads_of({THREADS, 1, 1});
  for (unsigned b = 0; b < blocks; ++b) {
    block = {b, 0, 0};
    std::shuffle(order.begin(), order.end(), random);
    runner.run(order, [&] { kernel(parameters); });
  }
}

// Memory of exactly so many bytes, so that the sanitizer sees any access before or after it.
void* exact_alloc(size_t bytes) { return malloc(bytes); }
void exact_free(void* memory) { free(memory); }
}
