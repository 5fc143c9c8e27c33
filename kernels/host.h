// What the host executor provides: vectors of the compiler and what can be done with them.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#ifndef GPUSLICE_INLINE
#define GPUSLICE_INLINE inline __attribute__((always_inline))
#endif

#include "geometry.cuh"

namespace gpuslice {

struct Host {
  typedef unsigned char Vector __attribute__((vector_size(kVectorBytes)));

  template <class Index>
  static GPUSLICE_INLINE Index divide(Index n, Divisor<Index> by) {
    return n / by.value;
  }

  static GPUSLICE_INLINE Vector load(const char* source) {
    Vector v;
    memcpy(&v, source, sizeof v);
    return v;
  }

  // Bytes of the widest store past the caches. Two of them fill a cache line; of four, written to several places in
  // turns, some went to memory before their line was whole.
#if defined(__AVX__)
  static constexpr int kStreamBytes = 32;
#else
  static constexpr int kStreamBytes = kVectorBytes;
#endif

  template <bool Stream>
  static GPUSLICE_INLINE void store(char* target, Vector v) {
#if defined(__SSE2__)
    if constexpr (Stream) {  // past the caches; the address is aligned
      _mm_stream_si128(reinterpret_cast<__m128i*>(target), reinterpret_cast<__m128i>(v));
      return;
    }
#endif
    memcpy(target, &v, sizeof v);
  }

  // Store neighbours at once; past the caches the address is aligned to kStreamBytes, and their number even.
  template <bool Stream, int Count>
  static GPUSLICE_INLINE void store(char* target, const Vector (&v)[Count]) {
#if defined(__AVX__)
    if constexpr (Stream && Count > 1) {
#pragma GCC unroll 4
      for (int i = 0; i < Count; i += 2) {
        const __m256i pair = _mm256_set_m128i(reinterpret_cast<__m128i>(v[i + 1]), reinterpret_cast<__m128i>(v[i]));
        _mm256_stream_si256(reinterpret_cast<__m256i*>(target + i * kVectorBytes), pair);
      }
      return;
    }
#endif
#pragma GCC unroll 8
    for (int i = 0; i < Count; ++i) store<Stream>(target + i * kVectorBytes, v[i]);
  }

  // Store a few neighbours at once, from an address that is aligned to a vector.
  template <bool Stream, int Count>
  static GPUSLICE_INLINE void store_any(char* target, const Vector (&v)[Count]) {
    if (!Stream || reinterpret_cast<uintptr_t>(target) % kStreamBytes == 0) return store<Stream>(target, v);
    Vector inner[Count > 2 ? Count - 2 : 1];
#pragma GCC unroll 8
    for (int i = 0; i < Count - 2; ++i) inner[i] = v[i + 1];
    store<Stream>(target, v[0]);
    if constexpr (Count > 2) store<Stream>(target + kVectorBytes, inner);
    store<Stream>(target + (Count - 1) * kVectorBytes, v[Count - 1]);
  }

  static GPUSLICE_INLINE bool readable(const char* first, int vectors, const char* low, const char* high) {
    return first >= low && first + vectors * kVectorBytes <= high;
  }

  template <int Width>
  static GPUSLICE_INLINE void item(char* target, const char* source) {
    memcpy(target, source, Width);
  }

  // Items any stride apart, put together in registers: a vector read back from single stores would wait for them.
  template <int Width>
  static GPUSLICE_INLINE Vector gather(const char* source, long long stride) {
    if constexpr (Width == 16) return load(source);
    if constexpr (Width == 8) return gathered<uint64_t>(source, stride, std::make_integer_sequence<int, 2>{});
    if constexpr (Width == 4) return gathered<uint32_t>(source, stride, std::make_integer_sequence<int, 4>{});
    if constexpr (Width == 2) return gathered<uint16_t>(source, stride, std::make_integer_sequence<int, 8>{});
    if constexpr (Width == 1) return gathered<uint8_t>(source, stride, std::make_integer_sequence<int, 16>{});
  }

  template <class Map, int In, int Out>
  static GPUSLICE_INLINE void permute(const Vector (&in)[In], Vector (&out)[Out]) {
    for_constants<Out>([&](auto v) { out[v.value] = permuted<Map, v.value * kVectorBytes>(in); });
  }

  static GPUSLICE_INLINE bool storable(const char*) { return true; }

  static GPUSLICE_INLINE void prefetch(const char* source, long long distance) {
    __builtin_prefetch(reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(source) + distance));
  }

  // A tile is 16 KiB, which the first cache holds twice, and reads and writes whole cache lines.
  static constexpr int kPadding = 32;  // bytes a row of what is turned, so that a column is not in one set of the cache
  static constexpr bool kTransposes = true;

  template <int Width>
  static constexpr unsigned tile_run() {
    return Width == 1 ? 256 : Width == 2 ? 128 : 64;
  }

  template <int Width>
  static constexpr unsigned tile_unit() {
    return (1 << 14) / (tile_run<Width>() * Width);
  }

  // Move a tile by squares of as many vectors as a vector has items, turned in registers; `memory` holds it turned, so
  // that each row of the target is written at once.
  template <int Width>
  static GPUSLICE_INLINE void transpose(const char* source, long long read_pitch, char* target, long long write_pitch,
                                        unsigned run, unsigned unit, bool stream, char* memory) {
    constexpr unsigned kItems = kVectorBytes / Width, kPitch = tile_run<Width>() * Width + kPadding;
    if (run < kItems || unit < kItems) {
      for (unsigned u = 0; u < unit; ++u)
        for (unsigned r = 0; r < run; ++r)
          item<Width>(target + u * write_pitch + r * Width, source + r * read_pitch + u * Width);
      return;
    }
    // The last squares overlap the ones before where there are no whole numbers of them.
    for (unsigned r = 0; r < run; r += kItems) {
      const unsigned row = r + kItems <= run ? r : run - kItems;
      for (unsigned i = 0; i < kItems; ++i)
        for (unsigned line = 0; line < tile_unit<Width>() * Width; line += kLineBytes)
          prefetch(source + (row + i) * read_pitch, unit * Width + line);  // the next tile's
      for (unsigned u = 0; u < unit; u += kItems) {
        const unsigned column = u + kItems <= unit ? u : unit - kItems;
        const char* read = source + row * read_pitch + column * Width;
        char* turned = memory + column * kPitch + row * Width;
        Vector square[kItems];
#pragma GCC unroll 16
        for (unsigned i = 0; i < kItems; ++i, read += read_pitch) square[i] = load(read);
        turn<Width>(square);
#pragma GCC unroll 16
        for (unsigned i = 0; i < kItems; ++i, turned += kPitch) store<false>(turned, square[i]);
      }
    }
    for (unsigned u = 0; u < unit; ++u) copy(target + u * write_pitch, memory + u * kPitch, run * Width, stream);
  }

 private:
  // Rows become columns: the upper half of the rows is interleaved with the lower one, as often as it can be halved.
  template <int Width, unsigned Items>
  static GPUSLICE_INLINE void turn(Vector (&square)[Items]) {
#pragma GCC unroll 4
    for (unsigned turned = 1; turned < Items; turned *= 2) {
      Vector next[Items];
#pragma GCC unroll 8
      for (unsigned i = 0; i < Items / 2; ++i) {
        next[2 * i] = interleaved<Width, 0>(square[i], square[i + Items / 2]);
        next[2 * i + 1] = interleaved<Width, kVectorBytes / 2>(square[i], square[i + Items / 2]);
      }
#pragma GCC unroll 16
      for (unsigned i = 0; i < Items; ++i) square[i] = next[i];
    }
  }

  // The items of half a vector from `first` on and those of another vector, in turns.
  template <int Width, int First>
  static GPUSLICE_INLINE Vector interleaved(Vector a, Vector b) {
    return [&]<int... I>(std::integer_sequence<int, I...>) {
      return __builtin_shufflevector(a, b,
                                     (I / Width % 2 * kVectorBytes + First + I / Width / 2 * Width + I % Width)...);
    }(std::make_integer_sequence<int, kVectorBytes>{});
  }

  static GPUSLICE_INLINE void copy(char* target, const char* source, unsigned bytes, bool stream) {
    if (!stream) {
      memcpy(target, source, bytes);
      return;
    }
    constexpr int kAtOnce = kStreamBytes / kVectorBytes;
    unsigned at = 0;
    const auto move = [&]<int Count>(std::integral_constant<int, Count>) {
      Vector v[Count];
      for (int i = 0; i < Count; ++i) v[i] = load(source + at + i * kVectorBytes);
      store<true>(target + at, v);
      at += Count * kVectorBytes;
    };
    constexpr std::integral_constant<int, 1> kOne;
    constexpr std::integral_constant<int, kAtOnce> kWidest;
    if (reinterpret_cast<uintptr_t>(target) % kStreamBytes && bytes >= kVectorBytes) move(kOne);
    while (bytes - at >= kStreamBytes) move(kWidest);
    while (bytes - at >= kVectorBytes) move(kOne);
    memcpy(target + at, source + at, bytes - at);
  }

  template <class Item, int... I>
  static GPUSLICE_INLINE Vector gathered(const char* source, long long stride, std::integer_sequence<int, I...>) {
    typedef Item Items __attribute__((vector_size(kVectorBytes)));
    const auto read = [&](int i) {
      Item item;
      memcpy(&item, source + i * stride, sizeof item);
      return item;
    };
    return reinterpret_cast<Vector>(Items{read(I)...});
  }

  template <int Count, class Function>
  static GPUSLICE_INLINE void for_constants(Function&& function) {
    [&]<int... I>(std::integer_sequence<int, I...>) {
      (function(std::integral_constant<int, I>{}), ...);
    }(std::make_integer_sequence<int, Count>{});
  }

  // One vector of the result, by folding the source vectors in one after the other.
  template <class Map, int Byte, int In>
  static GPUSLICE_INLINE Vector permuted(const Vector (&in)[In]) {
    Vector result = in[0];
    if constexpr (In == 1) return folded<Map, Byte, 0>(result, result);
    for_constants<(In > 1 ? In - 1 : 0)>([&](auto v) {
      if constexpr (v.value == 0)
        result = folded<Map, Byte, 0>(in[0], in[1]);
      else
        result = folded<Map, Byte, v.value>(result, in[v.value + 1]);
    });
    return result;
  }

  template <class Map, int Byte, int Round>
  static GPUSLICE_INLINE Vector folded(Vector before, Vector next) {
    return [&]<int... I>(std::integer_sequence<int, I...>) {
      return __builtin_shufflevector(before, next, pick<Round>(Map::from(Byte + I), I)...);
    }(std::make_integer_sequence<int, kVectorBytes>{});
  }

  // Which of 32 bytes becomes byte `to`: in the first round they are the first two vectors, in later ones the result so
  // far, where the byte may be in place already or yet to come, and the vector after.
  template <int Round>
  static constexpr int pick(int from, int to) {
    if (Round == 0) return from < 2 * kVectorBytes ? from : to;
    const int next = from - (Round + 1) * kVectorBytes;
    return next >= 0 && next < kVectorBytes ? kVectorBytes + next : to;
  }
};

}  // namespace gpuslice
