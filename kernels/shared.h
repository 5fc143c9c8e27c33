// The facts that C++ and Python share, each with its only home here.
//
// gpuslice/engine/plan/kernel_sources.py reads this file with a strict parser. It takes comments, `constexpr int`
// numbers and arrays, the enum, the struct and the list of kernels as they are written below, and refuses anything
// else.
#pragma once

namespace gpuslice {

constexpr int kVectorBytes = 16;  // what a kernel loads or stores at once
constexpr int kLineBytes = 64;    // a cache line of the host; two sectors of a GPU
constexpr int kMaxRank = 8;       // the most axes of a launch

// Bytes before the tables of a launch's parameters, for indices of 32 and 64 bits. geometry.cuh asserts them.
constexpr int kHeaderBytes32 = 168;
constexpr int kHeaderBytes64 = 304;

// Entries of the tables that CUDA kernels are compiled for, for indices of 32 and 64 bits. The last fits into 32,764
// bytes of parameters, which CUDA takes from 12.1 on; the one before into the 4,096 of older versions.
constexpr int kCapacities32[] = {1, 8, 128, 1152};
constexpr int kCapacities64[] = {1, 8, 88, 800};

constexpr int kCudaThreads = 256;  // of a block

// Bytes of an item, and for each width the items of a tile of the tiles kernel: along the axis on which the source is
// contiguous (unit) and along the axis on which the target is (run).
constexpr int kWidths[] = {1, 2, 4, 8, 16};
constexpr int kHostTileUnits[] = {64, 64, 64, 32, 16};
constexpr int kHostTileRuns[] = {256, 128, 64, 64, 64};
constexpr int kCudaTileUnits[] = {128, 64, 64, 32, 32};
constexpr int kCudaTileRuns[] = {128, 128, 64, 64, 32};

// The most sources of a tile of the host's stacked kernels: with all of them, tiles are whole rows of the target. And
// the least bytes of each array of a stack, so that one page of memory is not used for a line only.
constexpr int kHostStackRuns = 256;
constexpr int kStackBytes = 128;

// The same of the pixel_tiles kernels, in bytes, since they take pixels of any size; see pixel_tile_sides(). And the
// most channels of a pixel that they take.
constexpr int kHostPixelUnitBytes = 192;
constexpr int kHostPixelRunBytes = 768;
constexpr int kCudaPixelUnitBytes = 384;
constexpr int kCudaPixelRunBytes = 192;
constexpr int kMostChannels = 24;

constexpr int kPixelChannels = 3;  // of the pixels of pixel_rows

enum Kind { kRows, kPlanes, kInterleaved, kRearranged, kTiles, kPixelTiles, kPixelRows, kUnstacked, kStacked };

// `width`: bytes of an item; of kPlanes, kInterleaved, kRearranged, kPixelTiles and kPixelRows: of one channel of a
// pixel.
// `variant` of kRows: the step between items, or 0 for any stride. Of kPlanes, kInterleaved and kRearranged: the
// channels, negative if pixels go backward; 31 and 13: channels of two arrays, so many of the first and of the second.
// Of kPixelTiles: the channels, or 0 for any number of them. Of kPixelRows: the step between pixels of 3 channels, or 0
// for any stride. Of kTiles, kUnstacked and kStacked: 0.
struct Kernel {
  Kind kind;
  int width;
  int variant;
};

// Every kernel there is. The host library, the CUDA instantiations, the emulator of the tests and the planner all take
// their kernels from this list; the host library is asked for a kernel by its position.
// clang-format off
constexpr Kernel kKernels[] = {
  {kRows, 1, 0}, {kRows, 1, 1}, {kRows, 1, -1},
  {kRows, 1, 2}, {kRows, 1, -2}, {kRows, 1, 3}, {kRows, 1, -3}, {kRows, 1, 4}, {kRows, 1, -4},
  {kRows, 2, 0}, {kRows, 2, 1}, {kRows, 2, -1},
  {kRows, 2, 2}, {kRows, 2, -2}, {kRows, 2, 3}, {kRows, 2, -3}, {kRows, 2, 4}, {kRows, 2, -4},
  {kRows, 4, 0}, {kRows, 4, 1}, {kRows, 4, -1},
  {kRows, 8, 0}, {kRows, 8, 1}, {kRows, 8, -1},
  {kRows, 16, 0}, {kRows, 16, 1}, {kRows, 16, -1},
  {kPlanes, 1, 2}, {kPlanes, 1, -2}, {kPlanes, 1, 3}, {kPlanes, 1, -3}, {kPlanes, 1, 4}, {kPlanes, 1, -4},
  {kPlanes, 2, 2}, {kPlanes, 2, -2}, {kPlanes, 2, 3}, {kPlanes, 2, -3}, {kPlanes, 2, 4}, {kPlanes, 2, -4},
  {kPlanes, 4, 2}, {kPlanes, 4, -2}, {kPlanes, 4, 3}, {kPlanes, 4, -3}, {kPlanes, 4, 4}, {kPlanes, 4, -4},
  {kPlanes, 1, 31}, {kPlanes, 1, -31}, {kPlanes, 1, 13}, {kPlanes, 1, -13},
  {kPlanes, 2, 31}, {kPlanes, 2, -31}, {kPlanes, 2, 13}, {kPlanes, 2, -13},
  {kPlanes, 4, 31}, {kPlanes, 4, -31}, {kPlanes, 4, 13}, {kPlanes, 4, -13},
  {kInterleaved, 1, 2}, {kInterleaved, 1, -2}, {kInterleaved, 1, 3}, {kInterleaved, 1, -3}, {kInterleaved, 1, 4}, {kInterleaved, 1, -4},
  {kInterleaved, 1, 31}, {kInterleaved, 1, -31}, {kInterleaved, 1, 13}, {kInterleaved, 1, -13},
  {kInterleaved, 2, 2}, {kInterleaved, 2, -2}, {kInterleaved, 2, 3}, {kInterleaved, 2, -3}, {kInterleaved, 2, 4}, {kInterleaved, 2, -4},
  {kInterleaved, 2, 31}, {kInterleaved, 2, -31}, {kInterleaved, 2, 13}, {kInterleaved, 2, -13},
  {kInterleaved, 4, 2}, {kInterleaved, 4, -2}, {kInterleaved, 4, 3}, {kInterleaved, 4, -3}, {kInterleaved, 4, 4}, {kInterleaved, 4, -4},
  {kInterleaved, 4, 31}, {kInterleaved, 4, -31}, {kInterleaved, 4, 13}, {kInterleaved, 4, -13},
  {kInterleaved, 8, 2}, {kInterleaved, 8, -2}, {kInterleaved, 8, 3}, {kInterleaved, 8, -3}, {kInterleaved, 8, 4}, {kInterleaved, 8, -4},
  {kInterleaved, 16, 2}, {kInterleaved, 16, -2}, {kInterleaved, 16, 3}, {kInterleaved, 16, -3}, {kInterleaved, 16, 4}, {kInterleaved, 16, -4},
  {kRearranged, 1, 2}, {kRearranged, 1, -2}, {kRearranged, 1, 3}, {kRearranged, 1, -3},
  {kRearranged, 1, 4}, {kRearranged, 1, -4},
  {kRearranged, 2, 2}, {kRearranged, 2, -2}, {kRearranged, 2, 3}, {kRearranged, 2, -3},
  {kRearranged, 2, 4}, {kRearranged, 2, -4},
  {kRearranged, 4, 2}, {kRearranged, 4, -2}, {kRearranged, 4, 3}, {kRearranged, 4, -3},
  {kRearranged, 4, 4}, {kRearranged, 4, -4},
  {kTiles, 1, 0}, {kTiles, 2, 0}, {kTiles, 4, 0}, {kTiles, 8, 0}, {kTiles, 16, 0},
  {kPixelTiles, 1, 3}, {kPixelTiles, 2, 3}, {kPixelTiles, 4, 3},
  {kPixelTiles, 1, 0}, {kPixelTiles, 2, 0}, {kPixelTiles, 4, 0}, {kPixelTiles, 8, 0},
  {kPixelRows, 1, 0}, {kPixelRows, 1, 2}, {kPixelRows, 2, 0}, {kPixelRows, 2, 2}, {kPixelRows, 4, 0}, {kPixelRows, 4, 2},
  {kUnstacked, 1, 0}, {kUnstacked, 2, 0}, {kUnstacked, 4, 0}, {kUnstacked, 8, 0}, {kUnstacked, 16, 0},
  {kStacked, 1, 0}, {kStacked, 2, 0}, {kStacked, 4, 0}, {kStacked, 8, 0}, {kStacked, 16, 0},
};
// clang-format on

}  // namespace gpuslice
