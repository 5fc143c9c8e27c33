// Memory of the devices and page-locked memory of the host, both memory of this process.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace cuda_on_cpu {

struct Allocation {
  size_t bytes;
  cudaMemoryType type;
  int device;
  char* mapping;
  size_t mapped;
};

// Allocates, on the current device. The bytes are filled, so that they are not zero by accident. Device memory is
// limited.
cudaError_t allocate(void** address, size_t bytes, cudaMemoryType type);
cudaError_t release(void* address, cudaMemoryType type);

// Returns the allocation that an address lies in, or null.
const Allocation* allocation_of(const void* address);

size_t free_bytes();  // of the current device

// Fails if a copy leaves an allocation that it begins in, or if its kind does not fit their memory.
cudaError_t check_copy(const void* target, const void* source, size_t bytes, cudaMemcpyKind kind);
cudaError_t check_range(const void* address, size_t bytes, bool device);

}  // namespace cuda_on_cpu
