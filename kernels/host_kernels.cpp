// The host's kernels for one instruction set. This file is compiled once per set, with the set's flags.

#include "host.h"
#include "host_pages.h"
#include "host_runs.h"
#include "pixel_rows.cuh"
#include "pixel_tiles.cuh"
#include "pixels.cuh"
#include "rows.cuh"
#include "stacks.cuh"
#include "tiles.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

namespace {

template <Kernel K>
auto body_of(const Tables& tables) {
  constexpr bool kBackward = K.variant < 0;
  constexpr int kChannels = kBackward ? -K.variant : K.variant;
  if constexpr (K.kind == kRows)
    return Rows<HostIndex, K.width, K.variant>{};
  else if constexpr (K.kind == kPlanes)
    return Planes<HostIndex, K.width, kChannels, kBackward>(tables.target);
  else if constexpr (K.kind == kInterleaved)
    return Interleaved<HostIndex, K.width, kChannels, kBackward>(tables.source);
  else if constexpr (K.kind == kPixelRows)  // wider channels are gathered faster than they are taken from vectors
    return PixelRows<HostIndex, K.width, K.width == 1 ? K.variant : 0>{};
  else
    return Rearranged<HostIndex, K.width, kChannels, kBackward, !kBackward>{};
}

// Runs the blocks [first, last) of a launch.
template <Kernel K>
void run_kernel(const void* parameters, HostIndex first, HostIndex last) {
  const Tables tables(parameters);
  if constexpr (K.kind == kTiles) {
    alignas(kLineBytes) char memory[TileShape<K.width>::kMemory];
    const Header<HostIndex>& header = tables.header;
    const bool direct = writes_directly<K.width>(header.tiles, header.target_stride[header.rank - 2], header.stream);
    for (HostIndex block = first; block < last; ++block)
      copy_tile<HostIndex, K.width>(header, tile_of_block(tables, block), direct ? nullptr : memory);
  } else if constexpr (K.kind == kPixelTiles) {
    alignas(kLineBytes) char memory[kPixelTileMemory];
    for (HostIndex block = first; block < last; ++block)
      copy_pixel_tile<HostIndex, K.width, K.variant>(tables.header, tile_of_block(tables, block), memory);
  } else if constexpr (K.kind == kUnstacked || K.kind == kStacked) {
    constexpr bool kIsStacked = K.kind == kStacked;
    alignas(kLineBytes) char memory[kStackMemory];
    for (HostIndex block = first; block < last; ++block)
      copy_stack_tile<HostIndex, K.width, kIsStacked>(tables.header, tile_of_block(tables, block),
                                                      kIsStacked ? tables.source : tables.target, memory);
  } else {
    const auto body = body_of<K>(tables);
    // Of the last block, since the pages of others may be written by now.
    const bool past_caches = tables.header.stream && !is_untouched(end_of_block(tables, last - 1, body.kWidth));
    HostWalk walk(body, tables.header, past_caches);
    walk.move_blocks(tables, first, last);
  }
#if defined(__SSE2__)
  if (tables.header.stream) _mm_sfence();  // streaming stores are not ordered before what comes next
#endif
}

template <size_t... I>
RunKernel* kernel_at(unsigned number, std::index_sequence<I...>) {
  static constexpr RunKernel* kTable[] = {run_kernel<kKernels[I]>...};
  return number < sizeof...(I) ? kTable[number] : nullptr;
}

}  // namespace

RunKernel* find_kernel(unsigned number) { return kernel_at(number, std::make_index_sequence<kKernelCount>{}); }

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
