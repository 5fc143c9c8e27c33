// How a host thread moves a tile of the tiles kernel: squares of vectors are transposed in registers, on the way from
// the source to memory of the thread's own, from which each row of the target is written at once. Of arrays that the
// caches hold they go to the target itself.
//
// One thread's job: a tile.
// Limits: any address. With `stream`, target rows begin at multiples of 16 bytes.
// A tile has 16 KiB, so that the first-level cache holds it and its copy. It covers whole cache lines of source and
// target.
#pragma once

#include "config.h"
#include "host_vector.h"

namespace gpuslice {
inline namespace GPUSLICE_SET {

template <int Width>
struct TileShape {
  static constexpr unsigned kRun = kHostTileRuns[width_index(Width)];    // items along the target's contiguous axis
  static constexpr unsigned kUnit = kHostTileUnits[width_index(Width)];  // items along the source's
  static constexpr bool kAtLines = true;
  static constexpr unsigned kPitch = kRun * Width + 32;  // the padding keeps a column out of one set of the cache
  static constexpr unsigned kMemory = kUnit * kPitch;
  // So many tiles, or less, stay in the second-level cache. Then it is faster to write their target in pieces than by
  // way of memory in between. Wide items fill a line in so few pieces that this holds for more of them.
  static constexpr unsigned kDirectTiles = (Width < 8 ? 1 << 20 : 1 << 22) / (kRun * kUnit * Width);
};

// Target rows so far apart share so few sets of the first-level cache that they do not stay there together.
constexpr long long kPitchOfFewSets = 2048;

#if defined(__AVX2__)
constexpr unsigned kSquaresAtOnce = 2;  // one in each half of a register
#else
constexpr unsigned kSquaresAtOnce = 1;
#endif

template <unsigned Squares>
struct SquareRows;

template <>
struct SquareRows<1> {
  using Vector = Vector128;
  template <class Row>
  static GPUSLICE_INLINE Vector load(const Row& row_at, unsigned row, unsigned) {
    return load128(row_at(row));
  }
};

#if defined(__AVX2__)
template <>
struct SquareRows<2> {
  typedef unsigned char Vector __attribute__((vector_size(2 * kVectorBytes)));
  template <class Row>
  static GPUSLICE_INLINE Vector load(const Row& row_at, unsigned row, unsigned items) {
    const __m128i first = reinterpret_cast<__m128i>(load128(row_at(row)));
    return reinterpret_cast<Vector>(_mm256_set_m128i(reinterpret_cast<__m128i>(load128(row_at(row + items))), first));
  }
};
#endif

// In each 16 bytes, the items of one half from byte First on and those of another vector, in turns.
template <int Width, int First, class Vector, int... I>
GPUSLICE_INLINE Vector interleaved(Vector a, Vector b, std::integer_sequence<int, I...>) {
  constexpr int kBytes = sizeof...(I);
  return __builtin_shufflevector(a, b,
                                 (I / Width % 2 * kBytes + I / kVectorBytes * kVectorBytes + First +
                                  I % kVectorBytes / Width / 2 * Width + I % Width)...);
}

// Rows become columns: the upper half of the rows is interleaved with the lower one, as often as it can be halved.
template <int Width, unsigned Items, class Vector>
GPUSLICE_INLINE void transpose(Vector (&square)[Items]) {
  constexpr auto kBytes = std::make_integer_sequence<int, sizeof(Vector)>{};
#pragma GCC unroll 4
  for (unsigned done = 1; done < Items; done *= 2) {
    Vector next[Items];
#pragma GCC unroll 8
    for (unsigned i = 0; i < Items / 2; ++i) {
      next[2 * i] = interleaved<Width, 0>(square[i], square[i + Items / 2], kBytes);
      next[2 * i + 1] = interleaved<Width, kVectorBytes / 2>(square[i], square[i + Items / 2], kBytes);
    }
#pragma GCC unroll 16
    for (unsigned i = 0; i < Items; ++i) square[i] = next[i];
  }
}

// Transpose a vector of each row, and store the columns `pitch` bytes apart. A square has as many rows as a vector has
// items; several are one above the other.
template <int Width, unsigned Squares, class Row>
GPUSLICE_INLINE void transpose_squares(const Row& row_at, char* target, long long pitch) {
  using Rows = SquareRows<Squares>;
  constexpr unsigned kItems = kVectorBytes / Width;
  typename Rows::Vector square[kItems];
#pragma GCC unroll 16
  for (unsigned i = 0; i < kItems; ++i) square[i] = Rows::load(row_at, i, kItems);
  if constexpr (kItems > 1) transpose<Width>(square);
#pragma GCC unroll 16
  for (unsigned i = 0; i < kItems; ++i) memcpy(target + i * pitch, &square[i], sizeof square[i]);
}

// Transpose all squares of a tile of `run` rows by `unit` items. If a side is no whole number of them, the last ones
// overlap those before. `fetched` bytes of each row after the tile are prefetched.
template <int Width, unsigned Squares, class Row>
GPUSLICE_INLINE void transpose_tile(const Row& row_at, unsigned run, unsigned unit, unsigned fetched, long long pitch,
                                    char* memory) {
  constexpr unsigned kItems = kVectorBytes / Width, kRows = Squares * kItems;
  if constexpr (Squares > 1)
    if (run < kRows) return transpose_tile<Width, 1>(row_at, run, unit, fetched, pitch, memory);
  for (unsigned r = 0; r < run; r += kRows) {
    const unsigned row = r + kRows <= run ? r : run - kRows;
    for (unsigned i = 0; i < kRows; ++i)
      for (unsigned line = 0; line < fetched; line += kLineBytes)
        prefetch(row_at(row + i), unit * Width + line);  // the next tile's
    for (unsigned u = 0; u < unit; u += kItems) {
      const unsigned column = u + kItems <= unit ? u : unit - kItems;
      transpose_squares<Width, Squares>([&](unsigned i) { return row_at(row + i) + column * Width; },
                                        memory + column * pitch + row * Width, pitch);
    }
  }
}

// Copy a row of a tile to its target. memcpy becomes `rep movs`, which writes whole lines without reading them first.
GPUSLICE_INLINE void copy_row(char* target, const char* source, unsigned bytes, bool stream) {
  if (!stream) {
    memcpy(target, source, bytes);
    return;
  }
  constexpr int kAtOnce = kStreamBytes / kVectorBytes;
  unsigned at = 0;
  if (reinterpret_cast<uintptr_t>(target) % kStreamBytes && bytes >= kVectorBytes) {
    store128cs(target, load128(source));
    at = kVectorBytes;
  }
  for (; bytes - at >= kStreamBytes; at += kStreamBytes) {
    Vector128 v[kAtOnce];
    for (int i = 0; i < kAtOnce; ++i) v[i] = load128(source + at + i * kVectorBytes);
    store_cs(target + at, v);
  }
  for (; bytes - at >= kVectorBytes; at += kVectorBytes) store128cs(target + at, load128(source + at));
  memcpy(target + at, source + at, bytes - at);
}

// Whether the tiles of a launch are written to the target itself: its part stays in the caches, and the rows of a tile
// in the first-level cache.
template <int Width>
inline bool writes_directly(unsigned long long tiles, long long write_pitch, bool stream) {
  return !stream && tiles <= TileShape<Width>::kDirectTiles && write_pitch % kPitchOfFewSets;
}

// Move a tile of `run` by `unit` items; both addresses are those of its first item. Without memory of the thread's own
// it is written directly.
template <int Width>
GPUSLICE_INLINE void move_tile(const char* source, long long read_pitch, char* target, long long write_pitch,
                               unsigned run, unsigned unit, bool stream, char* memory) {
  using Shape = TileShape<Width>;
  constexpr unsigned kItems = kVectorBytes / Width;
  if (run < kItems || unit < kItems) {
    for (unsigned u = 0; u < unit; ++u)
      for (unsigned r = 0; r < run; ++r)
        copy_item<Width>(target + u * write_pitch + r * Width, source + r * read_pitch + u * Width);
    return;
  }
  const auto row_at = [&](unsigned r) { return source + r * read_pitch; };
  if (!memory) {
    transpose_tile<Width, kSquaresAtOnce>(row_at, run, unit, Shape::kUnit * Width, write_pitch, target);
    return;
  }
  transpose_tile<Width, kSquaresAtOnce>(row_at, run, unit, Shape::kUnit * Width, Shape::kPitch, memory);
  for (unsigned u = 0; u < unit; ++u)
    copy_row(target + u * write_pitch, memory + u * Shape::kPitch, run * Width, stream);
}

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
