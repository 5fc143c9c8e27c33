// CUDA's runtime interface to memory.

#include <cstring>

#include "api.h"
#include "memory.h"
#include "stream.h"

using cuda_on_cpu::call;
using cuda_on_cpu::enqueue;

namespace {

cudaError_t copy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (const cudaError_t error = cuda_on_cpu::check_copy(target, source, bytes, kind)) return error;
  return enqueue(stream, [=] {
    memmove(target, source, bytes);
    return cudaSuccess;
  });
}

cudaError_t fill(void* target, int value, size_t bytes, cudaStream_t stream) {
  if (const cudaError_t error = cuda_on_cpu::check_range(target, bytes, true)) return error;
  return enqueue(stream, [=] {
    memset(target, value, bytes);
    return cudaSuccess;
  });
}

// A call that might wait, as long as nothing forbids it.
template <class Function>
cudaError_t unsafe_call(Function&& function) {
  return call([&] {
    const cudaError_t error = cuda_on_cpu::may_call_unsafe();
    return error ? error : function();
  });
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** address, size_t bytes) {
  return unsafe_call([&] { return cuda_on_cpu::allocate(address, bytes, cudaMemoryTypeDevice); });
}

cudaError_t cudaFree(void* address) {
  return unsafe_call([&] { return cuda_on_cpu::release(address, cudaMemoryTypeDevice); });
}

cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned) {
  return unsafe_call([&] { return cuda_on_cpu::allocate(address, bytes, cudaMemoryTypeHost); });
}

cudaError_t cudaFreeHost(void* address) {
  return unsafe_call([&] { return cuda_on_cpu::release(address, cudaMemoryTypeHost); });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  return call([&] {
    const cuda_on_cpu::Allocation* found = cuda_on_cpu::allocation_of(address);
    void* given = const_cast<void*>(address);
    const bool on_host = !found || found->type == cudaMemoryTypeHost;
    *attributes = {};
    attributes->type = found ? found->type : cudaMemoryTypeUnregistered;
    attributes->device = found ? found->device : cudaInvalidDeviceId;
    attributes->devicePointer = found ? given : nullptr;
    attributes->hostPointer = on_host ? given : nullptr;
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  return unsafe_call([&] { return copy(target, source, bytes, kind, nullptr); });
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return call([&] { return copy(target, source, bytes, kind, stream); });
}

cudaError_t cudaMemset(void* target, int value, size_t bytes) {
  return unsafe_call([&] { return fill(target, value, bytes, nullptr); });
}

cudaError_t cudaMemsetAsync(void* target, int value, size_t bytes, cudaStream_t stream) {
  return call([&] { return fill(target, value, bytes, stream); });
}
}
