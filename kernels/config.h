// How this translation unit is compiled: for which executor and which instruction set. Both follow from the compiler's
// own macros, so that a file needs no options beyond those of its target.
//
// All code lives in `namespace gpuslice { inline namespace GPUSLICE_SET {`. A host library holds the same code for
// several instruction sets; the inline namespace keeps the linker from merging their functions.
#pragma once

#include "shared.h"

#if defined(__CUDACC__)

#define GPUSLICE_CUDA 1
#define GPUSLICE_SET cuda
#define GPUSLICE_INLINE __device__ __forceinline__

#else

#define GPUSLICE_CUDA 0
#if defined(__AVX2__) && defined(__BMI2__) && defined(__FMA__)
#define GPUSLICE_SET x86_64_v3
#elif defined(__SSE4_2__) && defined(__SSSE3__) && defined(__POPCNT__)
#define GPUSLICE_SET x86_64_v2
#else
#define GPUSLICE_SET baseline
#endif

// The fuzz defines it as `inline`: sanitizers make inlined code large.
#ifndef GPUSLICE_INLINE
#define GPUSLICE_INLINE inline __attribute__((always_inline))
#endif
// For code outside the inner loops: inlined, it would be compiled once more per kernel and be no faster.
#define GPUSLICE_OUTLINE __attribute__((noinline))

#endif

namespace gpuslice {
inline namespace GPUSLICE_SET {

constexpr int kKernelCount = sizeof kKernels / sizeof kKernels[0];

// Where a width has its entry in the arrays of shared.h.
GPUSLICE_INLINE constexpr int width_index(int width) { return (width > 1) + (width > 2) + (width > 4) + (width > 8); }

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
