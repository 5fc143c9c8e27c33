// Memory of the device and page-locked memory of the host, both memory of this process.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace cuda_on_cpu {

struct Allocation {
  size_t bytes;
  cudaMemoryType type;
  char* mapping;
  size_t mapped;
};

// Allocates; the first bytes of what comes are never zero by accident. Device memory is limited.
cudaError_t allocate(void** address, size_t bytes, cudaMemoryType type);
cudaError_t release(void* address, cudaMemoryType type);

// Gives the allocation that an address lies in, or null.
const Allocation* allocation_of(const void* address);

size_t free_bytes();

// Whether a copy stays inside the allocations that it begins in, and what it calls a device's memory is.
cudaError_t check_copy(const void* target, const void* source, size_t bytes, cudaMemcpyKind kind);
cudaError_t check_range(const void* address, size_t bytes, bool device);

}  // namespace cuda_on_cpu
