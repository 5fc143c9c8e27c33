// CUDA entry points, one template per kind of kernel, for NVRTC (C++17, sm_75 and newer).
//
// One thread's job: see cuda_walk.cuh (rows, planes, interleaved, rearranged, pixel_rows), cuda_tiles.cuh (tiles),
// cuda_pixel_tiles.cuh (pixel_tiles) and cuda_stacks.cuh (unstacked, stacked).
// Limits: kernels of the list in shared.h only. Index is unsigned for launches whose views span less than 2 GiB, else
// unsigned long long. Capacity is the number of parts that the tables hold.
// Launch shape: 1-D grids of as many blocks as the launch has tiles, kThreads threads each, no dynamic shared memory.
// Everything is in the one parameter. A contiguous target takes vectors from its first aligned address on; runs of
// other targets that are not aligned, and pixels, are written item by item.
//
// Four blocks per multiprocessor leave a thread 64 registers, which is enough for all bodies. Without the bound, ptxas
// spills some registers to fit a fifth block.

#include "cuda_tiles.cuh"
#include "cuda_walk.cuh"
#include "pixel_rows.cuh"
#include "pixel_tiles.cuh"
#include "pixels.cuh"
#include "rows.cuh"
#include "stacks.cuh"
#include "tiles.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

constexpr int kBlocks = 4;  // that a multiprocessor can hold, at least

static_assert(sizeof(Parameters<unsigned, kCapacities32[3]>) <= 32764 &&
              sizeof(Parameters<unsigned long long, kCapacities64[3]>) <= 32764 &&
              sizeof(Parameters<unsigned, kCapacities32[2]>) <= 4096 &&
              sizeof(Parameters<unsigned long long, kCapacities64[2]>) <= 4096);

template <class Index, int Capacity, int Width, int Step>
__global__ void __launch_bounds__(kThreads, kBlocks) rows(const __grid_constant__ Parameters<Index, Capacity> p) {
  walk(Rows<Index, Width, Step>{}, p.header, tile_of(p.header, p, static_cast<Index>(blockIdx.x)));
}

template <class Index, int Capacity, int Width, int Channels>
__global__ void __launch_bounds__(kThreads, kBlocks) planes(const __grid_constant__ Parameters<Index, Capacity> p) {
  constexpr bool kBackward = Channels < 0;
  constexpr int kChannels = kBackward ? -Channels : Channels;
  walk(Planes<Index, Width, kChannels, kBackward>(p.target), p.header,
       tile_of(p.header, p, static_cast<Index>(blockIdx.x)));
}

template <class Index, int Capacity, int Width, int Channels>
__global__ void __launch_bounds__(kThreads, kBlocks)
    interleaved(const __grid_constant__ Parameters<Index, Capacity> p) {
  constexpr bool kBackward = Channels < 0;
  constexpr int kChannels = kBackward ? -Channels : Channels;
  walk(Interleaved<Index, Width, kChannels, kBackward>(p.source), p.header,
       tile_of(p.header, p, static_cast<Index>(blockIdx.x)));
}

template <class Index, int Capacity, int Width, int Channels>
__global__ void __launch_bounds__(kThreads, kBlocks) rearranged(const __grid_constant__ Parameters<Index, Capacity> p) {
  constexpr bool kBackward = Channels < 0;
  constexpr int kChannels = kBackward ? -Channels : Channels;
  walk(Rearranged<Index, Width, kChannels, kBackward, !kBackward>{}, p.header,
       tile_of(p.header, p, static_cast<Index>(blockIdx.x)));
}

template <class Index, int Capacity, int Width, int Step>
__global__ void __launch_bounds__(kThreads, kBlocks) pixel_rows(const __grid_constant__ Parameters<Index, Capacity> p) {
  walk(PixelRows<Index, Width, Step>{}, p.header, tile_of(p.header, p, static_cast<Index>(blockIdx.x)));
}

template <class Index, int Capacity, int Width, int>
__global__ void __launch_bounds__(kThreads, kBlocks) tiles(const __grid_constant__ Parameters<Index, Capacity> p) {
  __shared__ __align__(16) char memory[TileShape<Width>::kMemory];
  copy_tile<Index, Width>(p.header, tile_of(p.header, p, static_cast<Index>(blockIdx.x)), memory);
}

template <class Index, int Capacity, int Width, int>
__global__ void __launch_bounds__(kThreads, kBlocks) unstacked(const __grid_constant__ Parameters<Index, Capacity> p) {
  __shared__ __align__(16) char memory[kStackMemory];
  copy_stack_tile<Index, Width, false>(p.header, tile_of(p.header, p, static_cast<Index>(blockIdx.x)), p.target,
                                       memory);
}

template <class Index, int Capacity, int Width, int>
__global__ void __launch_bounds__(kThreads, kBlocks) stacked(const __grid_constant__ Parameters<Index, Capacity> p) {
  __shared__ __align__(16) char memory[kStackMemory];
  copy_stack_tile<Index, Width, true>(p.header, tile_of(p.header, p, static_cast<Index>(blockIdx.x)), p.source, memory);
}

template <class Index, int Capacity, int Width, int Channels>
__global__ void __launch_bounds__(kThreads, kBlocks)
    pixel_tiles(const __grid_constant__ Parameters<Index, Capacity> p) {
  __shared__ __align__(16) char memory[kPixelTileMemory];
  copy_pixel_tile<Index, Width, Channels>(p.header, tile_of(p.header, p, static_cast<Index>(blockIdx.x)), memory);
}

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
