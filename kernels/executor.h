// The executor of this translation unit: 16-byte vectors, single items, and how a tile of items or pixels moves.
//
// Both executors provide the same names:
//   Vector128                      16 bytes in registers
//   permute<Map>(in, out)          vectors made of the bytes of other vectors; see permute.cuh
//   copy_item<Width>(target, source)
//   gather<Width>(source, stride), gather_pixels<Width>(source, stride, out)
//   TileShape<Width>, move_tile<Width>(...)  what tiles.cuh needs
//   kStackMemory, move_unstacked<Width>(...), move_stacked<Width>(...)  what stacks.cuh needs
//   kPixelTileMemory, kPixelTilesAtLines, move_pixels<Width, Channels>(...)  what pixel_tiles.cuh needs
// Only the executor's own code loads and stores: a kernel says which vectors to read, and where those that it makes go.
#pragma once

#include "config.h"

#if GPUSLICE_CUDA
#include "cuda_pixel_tiles.cuh"
#include "cuda_stacks.cuh"
#include "cuda_tiles.cuh"
#include "cuda_vector.cuh"
#else
#include "host_pixel_tiles.h"
#include "host_stacks.h"
#include "host_tiles.h"
#include "host_vector.h"
#endif
