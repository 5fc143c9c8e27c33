// The host library: every kernel behind one C function, for several instruction sets in one binary.
//
// gpuslice/engine/host_build.py compiles host_kernels.cpp once per instruction set and this file once. GPUSLICE_SETS is
// defined if there are several sets; GPUSLICE_DIGEST is the digest of the sources.

#include "host.h"

#include <cstring>
#include <exception>
#include <thread>
#include <vector>

#include "config.h"

#ifndef GPUSLICE_DIGEST
#define GPUSLICE_DIGEST ""
#endif

namespace gpuslice {

#if defined(GPUSLICE_SETS)
namespace x86_64_v2 {
FindKernel find_kernel;
}
namespace x86_64_v3 {
FindKernel find_kernel;
}
#else
inline namespace GPUSLICE_SET {
FindKernel find_kernel;
}
#endif

namespace {

struct InstructionSet {
  const char* name;
  bool available;  // on this processor
  FindKernel* find_kernel;
};

// The best one first.
const InstructionSet kSets[] = {
#if defined(GPUSLICE_SETS)
    {"x86-64-v3", __builtin_cpu_supports("x86-64-v3") != 0, x86_64_v3::find_kernel},
    {"x86-64-v2", __builtin_cpu_supports("x86-64-v2") != 0, x86_64_v2::find_kernel},
#else
    {"baseline", true, find_kernel},
#endif
};

const InstructionSet* best() {
  for (const InstructionSet& set : kSets)
    if (set.available) return &set;
  return nullptr;
}

const InstructionSet* used = best();

}  // namespace
}  // namespace gpuslice

extern "C" {
#pragma GCC visibility push(default)

// Run a launch of `blocks` blocks on up to `threads` threads, the calling one among them. `kernel` is a position in the
// list of shared.h. Return 0, or 1 if there is no such kernel, or 2 if the processor lacks every instruction set.
int gpuslice_copy(unsigned kernel, const void* parameters, unsigned long long blocks, int threads) {
  using Index = unsigned long long;
  if (!gpuslice::used) return 2;
  gpuslice::RunKernel* const run = gpuslice::used->find_kernel(kernel);
  if (!run) return 1;
  if (threads <= 1 || blocks <= 1) return run(parameters, 0, blocks), 0;
  std::vector<std::thread> workers;
  const Index share = (blocks + threads - 1) / threads;
  Index started = blocks;  // the blocks from here on have a thread; the last shares go first
  try {
    workers.reserve(threads - 1);
    for (int i = threads - 1; i > 0; --i) {
      const Index first = i * share;
      if (first >= started) continue;
      workers.emplace_back(run, parameters, first, started);
      started = first;
    }
  } catch (const std::exception&) {  // no more threads are available: the calling one does what is left
  }
  run(parameters, 0, started);
  for (std::thread& worker : workers) worker.join();
  return 0;
}

// Return the digest of the sources that this library was compiled from.
const char* gpuslice_digest() { return GPUSLICE_DIGEST; }

// Return the name of an instruction set that was compiled, the best one first, or nullptr after the last.
const char* gpuslice_instruction_set_at(unsigned position) {
  return position < sizeof gpuslice::kSets / sizeof gpuslice::kSets[0] ? gpuslice::kSets[position].name : nullptr;
}

// Return the name of the instruction set in use, or "" if the processor lacks every one.
const char* gpuslice_instruction_set() { return gpuslice::used ? gpuslice::used->name : ""; }

// Use an instruction set. Return 0, or 1 if it was not compiled or the processor lacks it; nothing changes then.
int gpuslice_use_instruction_set(const char* name) {
  for (const gpuslice::InstructionSet& set : gpuslice::kSets)
    if (set.available && !strcmp(set.name, name)) return gpuslice::used = &set, 0;
  return 1;
}

#pragma GCC visibility pop
}
