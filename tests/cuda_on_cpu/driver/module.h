// Modules, which are shared libraries of kernels that compiler/compile.cpp compiled, and launches.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "block.h"
#include "kernel.h"

namespace cuda_on_cpu {

// A module is what dlopen returns.
void* load_module(const void* image);

// Returns a module's kernel, or null.
const emulated::Kernel* find_kernel(void* module, const char* name);

struct Shape {
  emulated::Place grid, block;
};

// Copies the arguments and queues the launch.
cudaError_t launch(const emulated::Kernel* kernel, Shape shape, cudaStream_t stream, void** arguments);

}  // namespace cuda_on_cpu
