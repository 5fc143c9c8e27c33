// How a host thread moves a tile of the kernels of stacks: squares of vectors are transposed in registers, on the way
// to memory of the thread's own, from which the targets are written. As host_tiles.h, but arrays fewer than a vector's
// items are transposed in whole vectors, too.
//
// One thread's job: a tile. Limits: any address, with `stream` too.
#pragma once

#include "host_tiles.h"
#include "host_vector.h"
#include "stack_geometry.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

// The padding keeps columns out of one set of the cache, and takes what a vector has beyond a short row.
constexpr unsigned kStackPadding = 32;
constexpr unsigned kStackMemory = kHostStackRuns * kStackBytes + kHostTileUnits[0] * kStackPadding;

// A vector of the first bytes from an address; no other byte is read.
GPUSLICE_OUTLINE inline Vector128 load_some(const char* source, unsigned bytes) {
  char buffer[kVectorBytes] = {};
  memcpy(buffer, source, bytes < kVectorBytes ? bytes : kVectorBytes);
  return load128(buffer);
}

// Transpose rows of fewer items than a vector has, a vector of each: the items become rows of the memory.
template <int Width>
GPUSLICE_INLINE void read_short_rows(const StackTile<unsigned long long>& tile, unsigned pitch, char* memory) {
  constexpr unsigned kItems = kVectorBytes / Width;
  const long long reach = tile.read_pitch < 0 ? -tile.read_pitch : tile.read_pitch;
  const long long bytes = (tile.units - tile.unit_at) * Width;  // of each row
  for (unsigned r = 0; r < tile.run; r += kItems) {
    const unsigned row = r + kItems <= tile.run ? r : tile.run - kItems;
    const char* read = tile.source + row * tile.read_pitch;
    // The rows of the source after one in memory are its bytes, too.
    const long long at = tile.run_at + row;
    const long long behind = tile.read_pitch < 0 ? at : static_cast<long long>(tile.runs) - at - kItems;
    Vector128 square[kItems];
    if (behind * reach + bytes >= kVectorBytes) {
      if constexpr (Width == 1) {
        if (bytes <= kVectorBytes / 2) {  // two rows fill a vector, so that half as many are transposed
          constexpr auto kBytes = std::make_integer_sequence<int, kVectorBytes>{};
          Vector128 half[kItems / 2];
#pragma GCC unroll 8
          for (unsigned i = 0; i < kItems / 2; ++i, read += tile.read_pitch)
            half[i] =
                interleaved<1, 0>(load_first<8>(read), load_first<8>(read + kItems / 2 * tile.read_pitch), kBytes);
          transpose<1>(half);
#pragma GCC unroll 8
          for (unsigned i = 0; i < kItems / 2; ++i)
            if (i < tile.unit) store128(memory + i * pitch + row, half[i]);
          continue;
        }
      }
#pragma GCC unroll 16
      for (unsigned i = 0; i < kItems; ++i, read += tile.read_pitch) square[i] = load128(read);
    } else {
      for (unsigned i = 0; i < kItems; ++i, read += tile.read_pitch) square[i] = load_some(read, bytes);
    }
    transpose<Width>(square);
#pragma GCC unroll 16
    for (unsigned i = 0; i < kItems; ++i)
      if (i < tile.unit) store128(memory + i * pitch + row * Width, square[i]);
  }
}

// Transpose columns of fewer items than a vector has. Each becomes a vector, in ascending order, so that the bytes that
// one has too many are written again by the next.
template <int Width, class Row>
GPUSLICE_INLINE void read_short_columns(const Row& row_at, unsigned run, unsigned unit, unsigned pitch, char* memory) {
  constexpr unsigned kItems = kVectorBytes / Width;
  for (unsigned u = 0; u < unit; u += kItems) {
    const unsigned column = u + kItems <= unit ? u : unit - kItems;
    if constexpr (Width == 1) {
      if (run <= kItems / 2) {  // as above: a vector becomes two short rows
        Vector128 half[kItems / 2] = {};
#pragma GCC unroll 8
        for (unsigned i = 0; i < kItems / 2; ++i)
          if (i < run) half[i] = load128(row_at(i) + column);
        transpose<1>(half);
#pragma GCC unroll 8
        for (unsigned i = 0; i < kItems / 2; ++i) {
          store_first<8>(memory + (column + 2 * i) * pitch, half[i]);
          store_first<8>(
              memory + (column + 2 * i + 1) * pitch,
              __builtin_shufflevector(half[i], half[i], 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15));
        }
        continue;
      }
    }
    Vector128 square[kItems] = {};
#pragma GCC unroll 16
    for (unsigned i = 0; i < kItems; ++i)
      if (i < run) square[i] = load128(row_at(i) + column * Width);
    transpose<Width>(square);
#pragma GCC unroll 16
    for (unsigned i = 0; i < kItems; ++i) store128(memory + (column + i) * pitch, square[i]);
  }
}

// Copy a row of a tile to its target, of any address. With `stream` whole cache lines go past the caches. What is
// before and after them goes through the caches, since other tiles write the rest of those lines soon.
GPUSLICE_INLINE void write_row(char* target, const char* source, unsigned bytes, bool stream) {
  const unsigned lead = -reinterpret_cast<uintptr_t>(target) % kLineBytes;
  if (!stream || bytes < lead + kLineBytes) {
    memcpy(target, source, bytes);
    return;
  }
  memcpy(target, source, lead);
  unsigned at = lead;
  for (; bytes - at >= kLineBytes; at += kLineBytes) copy_line_cs(target + at, source + at);
  memcpy(target + at, source + at, bytes - at);
}

template <int Width>
GPUSLICE_INLINE void move_unstacked(const StackTile<unsigned long long>& tile, const Header<unsigned long long>&,
                                    const Tile<unsigned long long>&, char* memory) {
  constexpr unsigned kItems = kVectorBytes / Width;
  const auto written = [&](unsigned u) { return reinterpret_cast<char*>(tile.table[u]) + tile.offset; };
  if (tile.run < kItems) {
    for (unsigned u = 0; u < tile.unit; ++u)
      for (unsigned r = 0; r < tile.run; ++r)
        copy_item<Width>(written(u) + r * Width, tile.source + r * tile.read_pitch + u * Width);
    return;
  }
  // The lines at both ends of a row of the tile, which are written in part, through the caches.
  if (tile.stream)
    for (unsigned u = 0; u < tile.unit; ++u) {
      prefetch(written(u), 0);
      prefetch(written(u), tile.run * Width);
    }
  const unsigned pitch = tile.side.run * Width + kStackPadding;
  if (tile.unit < kItems)
    read_short_rows<Width>(tile, pitch, memory);
  else
    transpose_tile<Width, kSquaresAtOnce>([&](unsigned r) { return tile.source + r * tile.read_pitch; }, tile.run,
                                          tile.unit, 0, pitch, memory);
  for (unsigned u = 0; u < tile.unit; ++u) write_row(written(u), memory + u * pitch, tile.run * Width, tile.stream);
}

template <int Width>
GPUSLICE_INLINE void move_stacked(const StackTile<unsigned long long>& tile, const Header<unsigned long long>&,
                                  const Tile<unsigned long long>&, char* memory) {
  constexpr unsigned kItems = kVectorBytes / Width;
  const auto row_at = [&](unsigned r) { return reinterpret_cast<const char*>(tile.table[r]) + tile.offset; };
  if (tile.unit < kItems) {
    for (unsigned u = 0; u < tile.unit; ++u)
      for (unsigned r = 0; r < tile.run; ++r)
        copy_item<Width>(tile.target + u * tile.write_pitch + r * Width, row_at(r) + u * Width);
    return;
  }
  const unsigned bytes = tile.run * Width;  // of a row of the target
  // Rows that the tile has whole are one in the target.
  const bool whole = tile.runs == tile.run && tile.write_pitch == bytes;
  const unsigned pitch = whole ? bytes : tile.side.run * Width;
  if (tile.run < kItems)
    read_short_columns<Width>(row_at, tile.run, tile.unit, pitch, memory);
  else
    transpose_tile<Width, kSquaresAtOnce>(row_at, tile.run, tile.unit,
                                          tile.side.unit * Width > 256 ? 0 : tile.side.unit * Width, pitch, memory);
  if (whole) return write_row(tile.target, memory, tile.unit * bytes, tile.stream);
  for (unsigned u = 0; u < tile.unit; ++u)
    write_row(tile.target + u * tile.write_pitch, memory + u * pitch, bytes, tile.stream);
}

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
