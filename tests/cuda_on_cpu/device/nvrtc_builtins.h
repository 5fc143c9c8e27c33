// What NVRTC knows without an #include, as far as CuPy's elementwise kernels and reductions need it. Comes before the
// source of every kernel.
#pragma once

#include <cassert>
#include <cmath>
#include <cstddef>

#include "device.h"
#include "kernel.h"

#define __CUDACC_RTC__

using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;

template <class T>
inline T min(T a, T b) {
  return b < a ? b : a;
}

template <class T>
inline T max(T a, T b) {
  return a < b ? b : a;
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }

// CuPy's headers ask for what follows, and it is not defined: a kernel that computes with halves or updates memory
// atomically does not load.
struct half;
float __half2float(unsigned short bits);
unsigned short __float2half_rn(float value);
unsigned short __half_as_ushort(half value);
half __ushort_as_half(unsigned short bits);

int __float_as_int(float value);
float __int_as_float(int bits);
long long __double_as_longlong(double value);
double __longlong_as_double(long long bits);
unsigned long long atomicAdd(unsigned long long* address, unsigned long long value);
template <class T>
T atomicCAS(T* address, T compared, T value);

// A clock that ticks whenever it is read.
inline long long clock64() {
  static long long ticks = 0;
  return ++ticks;
}
