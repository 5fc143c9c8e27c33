// How a host thread moves a tile of the pixel_tiles kernels: pixels are copied from the columns of the source to rows
// in memory of the thread's own, from which each row of the target is written at once.
//
// One thread's job: a tile. The code is the same for all sizes of pixels, except that those of 3 bytes are transposed
// in registers, 4 by 4. Limits: any address. A pixel of up to 16 bytes is read and written with the bytes after it, as
// far as these are in the source's row or in the memory.
#pragma once

#include "host_tiles.h"
#include "host_vector.h"
#include "pixel_geometry.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

constexpr bool kPixelTilesAtLines = true;
constexpr unsigned kRowsAtOnce = 32;  // of the source: their lines stay in the first cache, and are fetched in time
constexpr unsigned kMostUnits = kPixelUnitBytes / 2;  // pixels of a tile along the unit axis, if they have 2 bytes

// Bytes from row to row of a tile's memory. The rows of a tile begin in up to a cache line's worth of places.
constexpr unsigned pixel_tile_pitch(unsigned width, unsigned pixel) {
  return (pixel_tile_sides(width, pixel).run + kLineBytes / width) * pixel + 2 * kVectorBytes;
}

constexpr unsigned pixel_tile_memory() {
  unsigned most = 0;
  for (unsigned width : kWidths)
    for (unsigned channels = 2; channels <= kMostChannels; ++channels) {
      const unsigned pixel = channels * width;
      const unsigned size = pixel_tile_sides(width, pixel).unit * pixel_tile_pitch(width, pixel);
      if (size > most) most = size;
    }
  return most;
}

constexpr unsigned kPixelTileMemory = pixel_tile_memory();

// The pixels from the beginning of a cache line to an address; 0 if no pixel before it begins there. That is the offset
// in the line divided by the bytes of a pixel, modulo the bytes of a line. An odd number is its own inverse modulo 8,
// and one step of Newton's method doubles the bits.
GPUSLICE_INLINE unsigned pixels_in_line(const char* address, unsigned pixel) {
  const unsigned offset = reinterpret_cast<uintptr_t>(address) % kLineBytes, zeros = __builtin_ctz(pixel | kLineBytes);
  if (offset & ((1u << zeros) - 1)) return 0;
  const unsigned odd = pixel >> zeros;
  return (offset >> zeros) * (odd * (2 - odd * odd)) & (kLineBytes >> zeros) - 1;
}

// The tile as its rows need it: of each row of the target, the first pixel and the one after the last, along the run.
struct TileRows {
  unsigned pixel;
  unsigned units;
  unsigned pitch;  // of the memory
  long long begin[kMostUnits];
  long long end[kMostUnits];
  long long low;  // of all rows
  long long high;
  alignas(kVectorBytes) unsigned char from[kVectorBytes];  // which byte of a pixel becomes each byte
};

GPUSLICE_OUTLINE inline void find_rows(const PixelTile<unsigned long long>& tile, unsigned width, TileRows& rows) {
  rows.pixel = tile.channels * width;
  rows.pitch = pixel_tile_pitch(width, rows.pixel);
  const long long run_at = tile.run_at, runs = tile.runs, left = tile.units - tile.unit_at;
  rows.units = left < tile.side.unit ? left : tile.side.unit;
  rows.low = runs, rows.high = 0;
  const char* target = tile.target + tile.unit_at * tile.write_pitch + run_at * rows.pixel;
  for (unsigned u = 0; u < rows.units; ++u, target += tile.write_pitch) {
    const long long at = run_at - (tile.stream ? pixels_in_line(target, rows.pixel) : 0), end = at + tile.side.run;
    rows.begin[u] = at < 0 ? 0 : at < runs ? at : runs;
    rows.end[u] = end < runs ? end : runs;
    if (rows.begin[u] < rows.low) rows.low = rows.begin[u];
    if (rows.end[u] > rows.high) rows.high = rows.end[u];
  }
  for (unsigned i = 0; i < kVectorBytes; ++i)
    rows.from[i] = tile.reversed && i < rows.pixel ? (tile.channels - 1 - i / width) * width + i % width : i;
}

// Copy a pixel byte by byte: the last one of a row of the source or the target.
GPUSLICE_OUTLINE inline void copy_last_pixel(char* target, const char* source, const TileRows& rows) {
  for (unsigned i = 0; i < rows.pixel; ++i) target[i] = source[rows.from[i]];
}

// Copy pixels `read_pitch` bytes apart to neighbours. Those of up to 16 bytes are copied with what is after them, by
// `Bytes` at a time; Bytes is 0 for larger ones.
template <int Bytes, bool Reversed>
GPUSLICE_INLINE void copy_pixels(char* target, const char* source, long long read_pitch, long long count,
                                 const TileRows& rows) {
  const unsigned pixel = rows.pixel;
  Vector128 from{};
  if constexpr (Reversed) from = load128(reinterpret_cast<const char*>(rows.from));
  for (; count > 0; --count, source += read_pitch, target += pixel) {
    if constexpr (Reversed) {
      store_first<Bytes>(target, shuffled(load_first<Bytes>(source), from));
    } else if constexpr (Bytes) {
      char bytes[Bytes];
      memcpy(bytes, source, Bytes);
      memcpy(target, bytes, Bytes);
    } else {
      for (unsigned at = 0; at + kVectorBytes < pixel; at += kVectorBytes) store128(target + at, load128(source + at));
      store128(target + pixel - kVectorBytes, load128(source + pixel - kVectorBytes));
    }
  }
}

// Copy the pixels of some rows of the source, from `low` to `high` along the run, to rows that are `pitch` bytes apart.
// If `exact`, nothing may be written behind them.
template <int Bytes, bool Reversed>
GPUSLICE_OUTLINE void copy_columns(const PixelTile<unsigned long long>& tile, const TileRows& rows, long long low,
                                   long long high, char* target, long long pitch, bool exact) {
  const char* source = tile.source + tile.unit_at * rows.pixel;
  const unsigned long long after = (tile.units - tile.unit_at) * rows.pixel;  // bytes of the row from there on
  for (unsigned u = 0; u < rows.units; ++u, target += pitch, source += rows.pixel) {
    const long long begin = low > rows.begin[u] ? low : rows.begin[u], end = high < rows.end[u] ? high : rows.end[u];
    if (begin >= end) continue;
    const char* read = source + begin * tile.read_pitch;
    char* written = target + (begin - rows.low) * rows.pixel;
    long long single = end - begin;  // pixels to be copied byte by byte
    if (u * rows.pixel + Bytes <= after) {
      single = exact && Bytes > rows.pixel && end == rows.end[u];
      const long long count = end - begin - single;
      copy_pixels<Bytes, Reversed>(written, read, tile.read_pitch, count, rows);
      read += count * tile.read_pitch;
      written += count * rows.pixel;
    }
    for (; single > 0; --single, read += tile.read_pitch, written += rows.pixel) copy_last_pixel(written, read, rows);
  }
}

// Copy pixels of 3 bytes, 4 by 4: expanded to 4 bytes, transposed as words, and put together again. If a side is no
// whole number of squares, its last squares overlap the ones before. Nothing is written behind the pixels of the tile.
GPUSLICE_OUTLINE inline void copy_squares(const PixelTile<unsigned long long>& tile, const TileRows& rows,
                                          long long low, long long high, char* target, long long pitch, bool) {
  constexpr unsigned kSide = 4, kPixel = 3;
  // Copies, since what is stored through a pointer to char might change any member.
  const unsigned units = rows.units;
  const long long read_pitch = tile.read_pitch, last = rows.high - kSide;
  const char* source = tile.source + tile.unit_at * kPixel;
  const unsigned long long after = (tile.units - tile.unit_at) * kPixel;
  unsigned char together[kVectorBytes] = {};
  for (unsigned i = 0; i < kSide * kPixel; ++i) together[i] = i / kPixel * kSide + rows.from[i % kPixel];
  const Vector128 from = load128(reinterpret_cast<const char*>(together));
  target -= rows.low * kPixel;
  for (long long r = low; r < high; r += kSide) {
    const long long row = r < last ? r : last;
    const bool exact = (rows.high - row) * kPixel < kVectorBytes;  // nothing may be written behind the tile
    for (unsigned u = 0; u < units; u += kSide) {
      const unsigned column = u + kSide <= units ? u : units - kSide;
      // A vector has 4 bytes more than a square's row. They are those before it, if there are none after it.
      const bool ends = column * kPixel + kVectorBytes > after;
      const char* read = source + row * read_pitch + column * kPixel - (ends ? kSide : 0);
      char* written = target + column * pitch + row * kPixel;
      Vector128 square[kSide];
#pragma GCC unroll 4
      for (unsigned i = 0; i < kSide; ++i, read += read_pitch) {
        const Vector128 v = load128(read);
        square[i] = ends ? __builtin_shufflevector(v, v, 4, 5, 6, 6, 7, 8, 9, 9, 10, 11, 12, 12, 13, 14, 15, 15)
                         : __builtin_shufflevector(v, v, 0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11);
      }
      transpose<4>(square);
#pragma GCC unroll 4
      for (unsigned i = 0; i < kSide; ++i, written += pitch) {
        const Vector128 v = shuffled(square[i], from);
        if (exact)
          memcpy(written, &v, kSide * kPixel);
        else
          store128(written, v);
      }
    }
  }
}

using CopyRows = void(const PixelTile<unsigned long long>&, const TileRows&, long long, long long, char*, long long,
                      bool);

// Return how the pixels of a tile are copied.
GPUSLICE_INLINE CopyRows* copy_rows_of(const PixelTile<unsigned long long>& tile, const TileRows& rows) {
  if (rows.pixel == 3 && rows.units >= 4 && rows.high - rows.low >= 4) return copy_squares;
  if (rows.pixel <= 4) return tile.reversed ? copy_columns<4, true> : copy_columns<4, false>;
  if (rows.pixel <= 8) return tile.reversed ? copy_columns<8, true> : copy_columns<8, false>;
  if (rows.pixel <= kVectorBytes) return tile.reversed ? copy_columns<16, true> : copy_columns<16, false>;
  return copy_columns<0, false>;
}

// Write a row of the target. Only whole lines go past the caches.
GPUSLICE_INLINE void write_pixels(char* target, const char* source, unsigned bytes, bool stream) {
  if (!stream) return copy_row(target, source, bytes, false);
  const unsigned ahead = (0 - reinterpret_cast<uintptr_t>(target)) % kLineBytes;
  const unsigned head = ahead < bytes ? ahead : bytes, lines = (bytes - head) / kLineBytes * kLineBytes;
  if (head) memcpy(target, source, head);
  copy_row(target + head, source + head, lines, true);
  if (const unsigned rest = bytes - head - lines) memcpy(target + head + lines, source + head + lines, rest);
}

// Fetch what some rows of a tile read or write later.
GPUSLICE_INLINE void prefetch_rows(const char* tile, long long first, long long pitch, long long count,
                                   unsigned bytes) {
  for (; count > 0; --count, first += pitch)
    for (unsigned line = 0; line < bytes; line += kLineBytes) prefetch(tile, first + line);
}

GPUSLICE_OUTLINE inline void move_pixel_rows(const PixelTile<unsigned long long>& tile, unsigned width, char* memory) {
  TileRows rows;
  find_rows(tile, width, rows);
  CopyRows* const copy_rows = copy_rows_of(tile, rows);
  const char* next = tile.source + (tile.unit_at + rows.units) * rows.pixel;  // what the next tile reads
  char* target = tile.target + tile.unit_at * tile.write_pitch;
  // Through the caches the memory is needed only if the target's rows would share a set of the first one.
  const bool direct = !tile.stream && tile.write_pitch % kPageBytes;
  for (long long r = rows.low; r < rows.high; r += kRowsAtOnce) {
    const long long end = r + kRowsAtOnce < rows.high ? r + kRowsAtOnce : rows.high;
    prefetch_rows(next, r * tile.read_pitch, tile.read_pitch, end - r, rows.units * rows.pixel);
    if (direct) {
      prefetch_rows(target, end * rows.pixel, tile.write_pitch, rows.units, kRowsAtOnce * rows.pixel);
      copy_rows(tile, rows, r, end, target + rows.low * rows.pixel, tile.write_pitch, true);
    } else {
      copy_rows(tile, rows, r, end, memory, rows.pitch, false);
    }
  }
  if (direct) return;
  for (unsigned u = 0; u < rows.units; ++u, target += tile.write_pitch, memory += rows.pitch) {
    if (rows.begin[u] == rows.end[u]) continue;
    char* written = target + rows.begin[u] * rows.pixel;
    // A line that is written in part, by two tiles, is slow past the caches.
    const bool stream = tile.stream && (rows.begin[u] == 0 || reinterpret_cast<uintptr_t>(written) % kLineBytes == 0);
    write_pixels(written, memory + (rows.begin[u] - rows.low) * rows.pixel,
                 static_cast<unsigned>(rows.end[u] - rows.begin[u]) * rows.pixel, stream);
  }
}

// Move a tile. The code is compiled once for all widths and channels.
template <int Width, int Channels, class Header, class Tile>
GPUSLICE_INLINE void move_pixels(const PixelTile<unsigned long long>& tile, const Header&, const Tile&, char* memory) {
  move_pixel_rows(tile, Width, memory);
}

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
