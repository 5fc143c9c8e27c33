// The host library: every kernel behind one C function, for several instruction sets in one binary.

#include <exception>
#include <thread>
#include <vector>

using Index = unsigned long long;
using RunBlocks = void(int kind, int width, int variant, const void* packed, Index first, Index last);

// host_kernels.cpp, compiled for each instruction set.
#if defined(GPUSLICE_SETS)
namespace gpuslice_v2 {
RunBlocks run_blocks;
}
namespace gpuslice_v3 {
RunBlocks run_blocks;
}
#else
namespace gpuslice {
RunBlocks run_blocks;
}
#endif

namespace {

// The instruction set that this processor runs; empty where it lacks what the library was compiled for.
const char* instruction_set() {
#if defined(GPUSLICE_SETS)
  if (__builtin_cpu_supports("x86-64-v3")) return "x86-64-v3";
  return __builtin_cpu_supports("x86-64-v2") ? "x86-64-v2" : "";
#else
  return "baseline";
#endif
}

RunBlocks* chosen() {
#if defined(GPUSLICE_SETS)
  static RunBlocks* const run = __builtin_cpu_supports("x86-64-v3") ? gpuslice_v3::run_blocks : gpuslice_v2::run_blocks;
  return run;
#else
  return gpuslice::run_blocks;
#endif
}

}  // namespace

extern "C" {

// Run a launch of `blocks` blocks on up to `threads` threads, the calling one among them.
__attribute__((visibility("default"))) void gpuslice_copy(int kind, int width, int variant, const void* packed,
                                                          unsigned long long blocks, int threads) {
  RunBlocks* const run_blocks = chosen();
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

__attribute__((visibility("default"))) const char* gpuslice_instruction_set() { return instruction_set(); }
}
