// The CUDA kernels of kernels/copy.cu for one width of the index and one capacity of the tables, compiled for the CPU
// by tests/cuda_on_cpu/device/. tests/fuzz/build.py compiles this file several times and defines
//   INDEX_BITS, CAPACITY
//   KINDS                 a bit per kind of kernel that is wanted
//   EVERY                 1: every kernel has large tables too

#include <utility>

#include "device.h"
// After device.h, which stands in for what NVRTC knows by itself.
#include "copy.cu"
#include "emulate.h"

namespace {

using Index = std::conditional_t<INDEX_BITS == 32, unsigned, unsigned long long>;
using Parameters = gpuslice::Parameters<Index, CAPACITY>;

// Large tables differ in the search for a block's part only, so a few kernels are enough. The parts of planes
// and interleaved are channels, and their tables have one size.
constexpr bool is_wanted(gpuslice::Kernel kernel) {
  if (!(KINDS >> kernel.kind & 1)) return false;
  if (kernel.kind == gpuslice::kPlanes || kernel.kind == gpuslice::kInterleaved) return CAPACITY == 8;
  return EVERY || CAPACITY <= 8 || (kernel.variant >= -1 && kernel.variant <= 1);
}

template <auto Function>
void call(const void* parameters) {
  Function(*static_cast<const Parameters*>(parameters));
}

template <unsigned Number>
constexpr emulated::Kernel kernel_at() {
  using namespace gpuslice;
  constexpr gpuslice::Kernel k = kKernels[Number];
  if constexpr (!is_wanted(k))
    return nullptr;
  else if constexpr (k.kind == kRows)
    return call<rows<Index, CAPACITY, k.width, k.variant>>;
  else if constexpr (k.kind == kPlanes)
    return call<planes<Index, CAPACITY, k.width, k.variant>>;
  else if constexpr (k.kind == kInterleaved)
    return call<interleaved<Index, CAPACITY, k.width, k.variant>>;
  else if constexpr (k.kind == kRearranged)
    return call<rearranged<Index, CAPACITY, k.width, k.variant>>;
  else if constexpr (k.kind == kPixelTiles)
    return call<pixel_tiles<Index, CAPACITY, k.width, k.variant>>;
  else if constexpr (k.kind == kUnstacked)
    return call<unstacked<Index, CAPACITY, k.width, k.variant>>;
  else if constexpr (k.kind == kStacked)
    return call<stacked<Index, CAPACITY, k.width, k.variant>>;
  else if constexpr (k.kind == kPixelRows)
    return call<pixel_rows<Index, CAPACITY, k.width, k.variant>>;
  else
    return call<tiles<Index, CAPACITY, k.width, k.variant>>;
}

template <unsigned... Numbers>
emulated::Kernel find_among(unsigned number, std::integer_sequence<unsigned, Numbers...>) {
  static constexpr emulated::Kernel kTable[] = {kernel_at<Numbers>()...};
  return number < sizeof...(Numbers) ? kTable[number] : nullptr;
}

emulated::Kernel find(unsigned number) {
  return find_among(number, std::make_integer_sequence<unsigned, gpuslice::kKernelCount>{});
}

// Only its effect is wanted: the table is known when the library is loaded.
const bool kAdded = (emulated::kernel_tables().push_back({INDEX_BITS, CAPACITY, find}), true);

}  // namespace
