// Division of an index by a number that the planner knows.
//
// The host divides. A GPU has no instruction for it, so the planner adds a magic number: for n below half the range of
// Index, n / value == (mulhi(n, magic) + n) >> ceil(log2(value)). The magic of 1 is 1.
#pragma once

#include "config.h"

namespace gpuslice {
inline namespace GPUSLICE_SET {

template <class Index>
struct Divisor {
  Index value;
  Index magic;
};

#if GPUSLICE_CUDA

GPUSLICE_INLINE unsigned divide(unsigned n, Divisor<unsigned> by) {
  return (__umulhi(n, by.magic) + n) >> (32 - __clz(static_cast<int>(by.value - 1)));
}

GPUSLICE_INLINE unsigned long long divide(unsigned long long n, Divisor<unsigned long long> by) {
  return (__umul64hi(n, by.magic) + n) >> (64 - __clzll(static_cast<long long>(by.value - 1)));
}

#else

template <class Index>
GPUSLICE_INLINE Index divide(Index n, Divisor<Index> by) {
  return n / by.value;
}

#endif

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
