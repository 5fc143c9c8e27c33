// What the operating system does with the pages of targets.
#pragma once

#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "config.h"

namespace gpuslice {
inline namespace GPUSLICE_SET {

// Whether an address is in a page that was never written, as those of new large arrays are. The system clears such a
// page when it is first written, and its lines are in the caches then: stores past the caches would have to evict them.
inline bool is_untouched([[maybe_unused]] const char* address) {
#if defined(__linux__)
  static const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  unsigned char is_there = 1;
  void* const begin = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(address) / page * page);
  return mincore(begin, 1, &is_there) == 0 && !(is_there & 1);
#else
  return false;
#endif
}

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
