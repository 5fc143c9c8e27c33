// CUDA's device language as far as kernels/ uses it, for g++: the CUDA executor runs on a CPU, thread by thread.
//
// What it shows: index arithmetic, permutations, edges, and that every vector access is aligned (it aborts where one is
// not). Threads of a block run in shuffled order, each until it ends or reaches a barrier, so a missing barrier shows
// as data that is not there yet. What it cannot show: anything about speed, or whether NVIDIA's compilers take the
// text.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define __device__
#define __global__
#define __forceinline__ inline  // the sanitizers make inlined code large
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
struct uint3 {
  unsigned x, y, z;
};

inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

namespace emulated {
extern uint3 thread, block;
void barrier();

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
