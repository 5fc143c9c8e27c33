// How a CUDA block moves a tile of the pixel_tiles kernels: source rows into shared memory, then columns of pixels of
// it to the target.
//
// One thread's job: a few vectors of source rows (cuda_staging.cuh), a barrier, a few vectors of target rows, which
// begin at the row's first aligned address.
// Limits: every thread of the block reaches the barrier, or none does.
// Launch shape: 1-D blocks of kThreads threads, one per tile; shared memory is static.
#pragma once

#include "cuda_staging.cuh"
#include "cuda_tiles.cuh"
#include "permute.cuh"
#include "pixel_geometry.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

constexpr bool kPixelTilesAtLines = false;
constexpr unsigned kTileRowBytes = kPixelUnitBytes;  // bytes from row to row of a tile in shared memory
constexpr unsigned kTileRows = kLineBytes;           // of a tile; one behind them is read and not used
constexpr unsigned kPixelTileMemory = (kTileRows + 1) * kTileRowBytes;
static_assert(kTileRowBytes >= kMostChannels * kVectorBytes && kCudaPixelRunBytes < 2 * 2 * kLineBytes);

// Where a byte of a row is. Four neighbouring vectors of the target come from rows that are rotated by 0, 24, 48 and 72
// words, and a warp reads 8 times 3 neighbouring words for each: they are in different banks, as far as the vectors
// begin where pixels do.
GPUSLICE_INLINE unsigned pixel_place(unsigned pixel, unsigned row, unsigned byte) {
  const unsigned at = byte + row * pixel / kVectorBytes % 4 * (kTileRowBytes / 4);
  return row * kTileRowBytes + (at < kTileRowBytes ? at : at - kTileRowBytes);
}

// A row of the target of a tile.
template <int Width>
struct TargetRow {
  const char* memory;
  char* target;
  unsigned pixel;
  unsigned bytes;
  unsigned column;  // bytes from the beginning of a row in shared memory
  bool reversed;

  // Where the item that begins at a byte of the row is in shared memory.
  GPUSLICE_INLINE const char* item(unsigned byte) const {
    const unsigned row = byte / pixel, at = byte - row * pixel;
    return memory + pixel_place(pixel, row, column + (reversed ? pixel - Width - at : at));
  }

  // Write the part of an aligned vector that is in the row, item by item. It begins `begin` bytes from the first pixel.
  GPUSLICE_INLINE void write_items(int begin) const {
#pragma unroll 1
    for (int byte = begin < 0 ? 0 : begin; byte < begin + kVectorBytes && byte < static_cast<int>(bytes); byte += Width)
      copy_item<Width>(target + byte, item(byte));
  }

  GPUSLICE_INLINE bool has_vector(int begin) const {
    return begin >= 0 && begin + kVectorBytes <= static_cast<int>(bytes);
  }
};

// Write rows of the target, a vector gathered item by item at a time.
template <int Width, class Stride>
GPUSLICE_INLINE void write_pixels(TargetRow<Width> row, Stride write_pitch, unsigned unit) {
  using Item = typename ItemOf<Width>::type;
  constexpr unsigned kBeside = 8;  // vectors of a row that neighbouring threads write
  const unsigned slots = (row.bytes / kVectorBytes + 1 + kBeside) / kBeside * kBeside;
  const char* memory = row.memory;
  char* target = row.target;
  for_each(slots * unit, [&](unsigned i) {
    const unsigned u = i / kBeside % unit, slot = i % kBeside + i / kBeside / unit * kBeside;
    row.target = target + static_cast<Stride>(u) * write_pitch;
    row.column = u * row.pixel;
    const int begin = static_cast<int>(slot * kVectorBytes) - static_cast<int>(offset_of(row.target));
    if (!row.has_vector(begin)) return row.write_items(begin);
    unsigned pixel = begin / row.pixel, at = begin - pixel * row.pixel;
    store128cs(row.target + begin, assembled<Width>([&](int) {
                 const unsigned byte = row.column + (row.reversed ? row.pixel - Width - at : at);
                 const Item item = *reinterpret_cast<const Item*>(memory + pixel_place(row.pixel, pixel, byte));
                 at += Width;
                 if (at == row.pixel) at = 0, ++pixel;
                 return item;
               }));
  });
}

// Write a vector of each column of pixels that fill three words. `word` has the rows of these.
template <int Width, bool Reversed, int Column, class Stride, int Words>
GPUSLICE_INLINE void write_columns(const unsigned (&word)[Words], unsigned offset, char* target, Stride write_pitch,
                                   unsigned count) {
  if (Column >= count) return;
  constexpr int kRows = Words / 3;
  unsigned made[6];  // more than the bytes of a column
  permute<PixelColumn<Width, kRows, Column, Reversed>>(word, made);
  store128cs(target,
             spliced(make_uint4(made[0], made[1], made[2], made[3]), make_uint4(made[4], made[5], 0, 0), offset));
  if constexpr ((Column + 1) * Width < 4)
    write_columns<Width, Reversed, Column + 1>(word, offset, target + write_pitch, write_pitch, count);
}

// Write rows of the target whose pixels have three channels and fill vectors alike: of neighbouring columns that fill
// three words, a vector each.
template <int Width, bool Reversed, class Stride>
GPUSLICE_INLINE void write_triples(TargetRow<Width> row, Stride write_pitch, unsigned unit) {
  constexpr unsigned kPixel = 3 * Width, kColumns = Width < 4 ? 4 / Width : 1, kBeside = 4, kBytes = 12;
  constexpr unsigned kGroups = kTileRowBytes / kBytes;        // of columns
  constexpr int kRows = Width == 1 ? 6 : Width == 2 ? 4 : 2;  // that a vector's pixels come from
  const int head = static_cast<int>(offset_of(row.target));
  const unsigned slots = (head + row.bytes + kVectorBytes - 1) / kVectorBytes;
  const char* memory = row.memory;
  char* target = row.target;
  for_each((slots + kBeside - 1) / kBeside * kBeside * kGroups, [&](unsigned i) {
    const unsigned slot = i % kBeside + i / (kBeside * kGroups) * kBeside, group = i / kBeside % kGroups;
    if (slot >= slots || group * kColumns >= unit) return;
    const unsigned count = unit - group * kColumns < kColumns ? unit - group * kColumns : kColumns;
    const int begin = static_cast<int>(slot * kVectorBytes) - head;
    char* written = target + static_cast<Stride>(group * kColumns) * write_pitch;
    if (!row.has_vector(begin)) {
#pragma unroll 1
      for (unsigned k = 0; k < count; ++k) {
        row.target = written + static_cast<Stride>(k) * write_pitch;
        row.column = (group * kColumns + k) * kPixel;
        row.write_items(begin);
      }
      return;
    }
    const unsigned first = begin / kPixel;
    unsigned word[3 * kRows];
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      const unsigned* read = reinterpret_cast<const unsigned*>(memory + pixel_place(kPixel, first + j, group * kBytes));
#pragma unroll
      for (int k = 0; k < 3; ++k) word[3 * j + k] = read[k];
    }
    write_columns<Width, Reversed, 0>(word, begin - first * kPixel, written + begin, write_pitch, count);
  });
}

// Move a tile. `memory` is shared memory.
template <int Width, int Channels, class Index>
GPUSLICE_INLINE void move_pixels(PixelTile<Index> tile, const Header<Index>& header, const Tile<Index>& part,
                                 char* memory) {
  using Stride = typename Signed<Index>::type;
  const unsigned pixel = tile.channels * Width;
  const Index runs = tile.runs - tile.run_at, units = tile.units - tile.unit_at;
  const unsigned run = runs < tile.side.run ? static_cast<unsigned>(runs) : tile.side.run;
  const unsigned unit = units < tile.side.unit ? static_cast<unsigned>(units) : tile.side.unit;
  const Span<Index> span = span_of(header, part, Width);
  const char* source = tile.source + static_cast<Stride>(tile.run_at) * tile.read_pitch + tile.unit_at * pixel;
  stage_rows<Width, 4>(
      run, unit * pixel, tile.side.unit * pixel / kVectorBytes,
      [&](unsigned row) { return source + static_cast<Stride>(row) * tile.read_pitch; }, [&](unsigned) { return span; },
      [&](unsigned row, unsigned byte) { return memory + pixel_place(pixel, row, byte); });
  barrier();
  char* target = tile.target + tile.run_at * pixel + static_cast<Stride>(tile.unit_at) * tile.write_pitch;
  const TargetRow<Width> row{memory, target, pixel, run * pixel, 0, tile.reversed};
  if constexpr (Channels == 3) {
    if (tile.write_pitch % kVectorBytes == 0) {
      if (tile.reversed)
        write_triples<Width, true>(row, tile.write_pitch, unit);
      else
        write_triples<Width, false>(row, tile.write_pitch, unit);
      return;
    }
  }
  write_pixels<Width>(row, tile.write_pitch, unit);
}

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
