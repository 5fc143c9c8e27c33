// CUDA's device language as far as kernels/ and CuPy's own kernels use it, for g++. block.cpp runs the threads of a
// kernel on a CPU, one after the other.
//
// What it shows: index arithmetic, permutations, edges, and that every vector access is aligned (it aborts if one is
// not). What it cannot show: anything about speed, or whether NVIDIA's compilers accept the source.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "place.h"

#define __CUDACC__
#define __host__
#define __device__
#define __global__
#ifndef __forceinline__
#define __forceinline__ inline  // the sanitizers make inlined code large
#endif
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))
// Shared by the threads of a block because blocks run one after the other.
#define __shared__ static

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

namespace emulated {

template <class T>
inline void check_aligned(const T* address) {
  if (reinterpret_cast<uintptr_t>(address) % sizeof(T)) {
    fprintf(stderr, "misaligned access of %zu bytes at %p\n", sizeof(T), static_cast<const void*>(address));
    abort();
  }
}

}  // namespace emulated

#define threadIdx emulated::thread
#define blockIdx emulated::block
#define blockDim emulated::block_size
#define gridDim emulated::grid_size

inline void __syncthreads() { emulated::barrier(); }

template <class T>
inline T __ldg(const T* address) {
  emulated::check_aligned(address);
  return *address;
}

template <class T>
inline void __stcs(T* address, T value) {
  emulated::check_aligned(address);
  *address = value;
}

inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32); }

inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}

inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }

inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned bits) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) >> (bits & 31));
}

inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) result |= static_cast<unsigned>(bytes >> (selector >> 4 * i & 7) * 8 & 255) << 8 * i;
  return result;
}
