// CUDA entry points, one template a kind of kernel, for NVRTC (C++17, sm_75 and up).
//
// Launch: 1-D grids of as many blocks as the launch has tiles, kThreads threads each, no dynamic shared memory.
// Everything is in the one parameter; Capacity is how many parts its tables hold. A contiguous target takes vectors
// from its first aligned address on; runs of others that are not aligned, and pixels, are written item by item.
//
// Four blocks to a multiprocessor leave a thread 64 registers, which all bodies do with; left to choose, ptxas spills
// some for the sake of a fifth.

#include "cuda.cuh"
#include "pixels.cuh"
#include "rows.cuh"
#include "tiles.cuh"

namespace gpuslice {

template <class Index, int Capacity, int Width, int Step>
__global__ void __launch_bounds__(kThreads, kBlocks) rows(const __grid_constant__ Parameters<Index, Capacity> p) {
  Cuda::walk(Rows<Cuda, Index, Width, Step>{}, p.header, tile_of(p.header, p, static_cast<Index>(blockIdx.x)));
}

template <class Index, int Capacity, int Width, int Channels>
__global__ void __launch_bounds__(kThreads, kBlocks) planes(const __grid_constant__ Parameters<Index, Capacity> p) {
  constexpr bool kBackward = Channels < 0;
  constexpr int kChannels = kBackward ? -Channels : Channels;
  Planes<Cuda, Index, Width, kChannels, kBackward> body;
  for (int i = 0; i < kChannels; ++i) body.plane[i] = static_cast<long long>(p.target[i] - p.target[0]);
  Cuda::walk(body, p.header, tile_of(p.header, p, static_cast<Index>(blockIdx.x)));
}

template <class Index, int Capacity, int Width, int Channels>
__global__ void __launch_bounds__(kThreads, kBlocks) rearranged(const __grid_constant__ Parameters<Index, Capacity> p) {
  constexpr bool kBackward = Channels < 0;
  constexpr int kChannels = kBackward ? -Channels : Channels;
  Cuda::walk(Rearranged<Cuda, Index, Width, kChannels, kBackward, !kBackward>{}, p.header,
             tile_of(p.header, p, static_cast<Index>(blockIdx.x)));
}

template <class Index, int Capacity, int Width, int>
__global__ void __launch_bounds__(kThreads, kBlocks) tiles(const __grid_constant__ Parameters<Index, Capacity> p) {
  using Body = Tiles<Cuda, Index, Width>;
  __shared__ __align__(16) char memory[Body::kMemory];
  Body::block(p.header, tile_of(p.header, p, static_cast<Index>(blockIdx.x)), memory);
}

}  // namespace gpuslice
