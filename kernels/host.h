// What host.cpp and host_kernels.cpp agree on: how a kernel of one instruction set is found and called.
#pragma once

namespace gpuslice {

// Runs the blocks [first, last) of a launch whose parameters begin at `parameters`; see geometry.cuh.
using RunKernel = void(const void* parameters, unsigned long long first, unsigned long long last);

// Returns a kernel by its position in the list of shared.h, or nullptr if the list has no such position.
using FindKernel = RunKernel*(unsigned number);

}  // namespace gpuslice
