// Allocations as mappings of this process; see memory.h.
//
// With guard pages, an allocation lies between two pages that are not mapped. It ends at the second one, except for the
// bytes that aligning it to a vector leaves. Those bytes, and the ones before it, are checked when it is released.

#include "memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "api.h"
#include "settings.h"

namespace cuda_on_cpu {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kVector = 16;
constexpr unsigned char kFill = 0xCD;

std::map<uintptr_t, Allocation> allocations;
std::map<int, size_t> used;  // bytes of each device

// Returns whether nothing was written between two addresses since the allocation was made.
bool untouched(const char* begin, const char* end) {
  for (; begin < end; ++begin)
    if (static_cast<unsigned char>(*begin) != kFill) return false;
  return true;
}

void check_surroundings(const char* address, const Allocation& allocation) {
  const size_t guard = settings().guard ? kPage : 0;
  const char *begin = allocation.mapping + guard, *end = allocation.mapping + allocation.mapped - guard;
  if (untouched(begin, address) && untouched(address + allocation.bytes, end)) return;
  fprintf(stderr, "a write beside an allocation of %zu bytes\n", allocation.bytes);
  abort();
}

}  // namespace

cudaError_t allocate(void** address, size_t bytes, cudaMemoryType type) {
  *address = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (type == cudaMemoryTypeDevice && bytes > free_bytes()) return cudaErrorMemoryAllocation;
  const size_t guard = settings().guard ? kPage : 0;
  const size_t usable = (bytes + kPage - 1) / kPage * kPage, mapped = usable + 2 * guard;
  void* mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return cudaErrorMemoryAllocation;
  char *begin = static_cast<char*>(mapping), *first = begin + guard;
  memset(first, kFill, usable);
  if (guard) {
    mprotect(begin, guard, PROT_NONE);
    mprotect(first + usable, guard, PROT_NONE);
    first += (usable - bytes) / kVector * kVector;
  }
  *address = first;
  allocations[reinterpret_cast<uintptr_t>(*address)] = {bytes, type, current_device, begin, mapped};
  if (type == cudaMemoryTypeDevice) used[current_device] += bytes;
  return cudaSuccess;
}

cudaError_t release(void* address, cudaMemoryType type) {
  if (!address) return cudaSuccess;
  const auto found = allocations.find(reinterpret_cast<uintptr_t>(address));
  if (found == allocations.end() || found->second.type != type) return cudaErrorInvalidValue;
  const Allocation allocation = found->second;
  check_surroundings(static_cast<char*>(address), allocation);
  if (type == cudaMemoryTypeDevice) used[allocation.device] -= allocation.bytes;
  allocations.erase(found);
  munmap(allocation.mapping, allocation.mapped);
  return cudaSuccess;
}

const Allocation* allocation_of(const void* address) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  auto after = allocations.upper_bound(at);
  if (after == allocations.begin()) return nullptr;
  --after;
  return at < after->first + after->second.bytes ? &after->second : nullptr;
}

size_t free_bytes() { return settings().memory - used[current_device]; }

cudaError_t check_range(const void* address, size_t bytes, bool device) {
  if (bytes == 0) return cudaSuccess;
  const Allocation* allocation = allocation_of(address);
  if (!allocation) return device ? cudaErrorInvalidValue : cudaSuccess;
  const void* last = static_cast<const char*>(address) + bytes - 1;
  return allocation_of(last) == allocation ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t check_copy(const void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (const cudaError_t error = check_range(target, bytes, to_device)) return error;
  return check_range(source, bytes, from_device);
}

}  // namespace cuda_on_cpu
