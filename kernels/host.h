// What the host executor provides: vectors of the compiler, and the walk of one thread over a tile, run by run.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__SSE2__)
#include <emmintrin.h>
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
    uint64_t half[2] = {0, 0};
#pragma GCC unroll 16
    for (int i = 0; i < kVectorBytes / Width; ++i) {
      uint64_t bits = 0;
      memcpy(&bits, source + i * stride, Width);
      half[i * Width / 8] |= bits << (i * Width % 8 * 8);
    }
    Vector v;
    memcpy(&v, half, sizeof v);
    return v;
  }

  template <class Map, int In, int Out>
  static GPUSLICE_INLINE void permute(const Vector (&in)[In], Vector (&out)[Out]) {
    for_constants<Out>([&](auto v) { out[v.value] = permuted<Map, v.value * kVectorBytes>(in); });
  }

  static constexpr int kPadding = 0;  // no banks to avoid

  template <int Width>
  static constexpr int tile_side() {
    return Width == 1 ? 128 : 64;  // rows of a few cache lines, a tile of at most 64 KiB
  }

  template <class Function>
  static GPUSLICE_INLINE void for_each(unsigned count, Function&& function) {
    for (unsigned i = 0; i < count; ++i) function(i);
  }

  static GPUSLICE_INLINE void barrier() {}

  static GPUSLICE_INLINE bool storable(const char*) { return true; }

  template <int Width>
  static GPUSLICE_INLINE void copy_items(char* target, const char* source, unsigned count) {
    if (count * Width == kVectorBytes)
      store<false>(target, load(source));
    else
      for (unsigned i = 0; i < count; ++i) item<Width>(target + i * Width, source + i * Width);
  }

  // Walk over a tile run by run; coordinates go up like an odometer, so only the first item needs divisions.
  template <class Body, class Index>
  static GPUSLICE_INLINE void walk(const Body& body, const Header<Index>& header, const Tile<Index>& tile) {
    using Stride = typename Signed<Index>::type;
    const int last = static_cast<int>(header.rank) - 1;
    const Stride stride = header.source_stride[last];
    const Index length = axis(header, tile, last).value;
    Place<Index> place = place_of<Host, Index, Body::kWidth>(header, tile, tile.begin);
    Index at[kMaxRank] = {}, extent[kMaxRank] = {};
    Index rest = tile.begin / length;
    for (int k = last - 1; k >= 0; --k) {
      extent[k] = axis(header, tile, k).value;
      at[k] = k ? rest % extent[k] : rest;
      rest /= extent[k];
    }
    // Short runs that go down defeat the hardware's prefetcher; the next rows are fetched while this one is moved.
    const Stride ahead = prefetch_distance(header, length, Body::kWidth);
    const char* row = place.source - static_cast<Stride>(place.done) * stride;
    char* target_row = place.target - place.done * Body::kWidth;
    for (Index item = tile.begin;;) {
      const Index count = place.room < tile.end - item ? place.room : tile.end - item;
      run(body, place, count, stride, ahead, header.stream);
      item += count;
      if (item >= tile.end) return;
      target_row += header.flat ? length * Body::kWidth : 0;
      for (int k = last - 1;; --k) {
        row += header.source_stride[k];
        if (!header.flat) target_row += header.target_stride[k];
        if (++at[k] < extent[k] || k == 0) break;
        at[k] = 0;
        row -= static_cast<Stride>(extent[k]) * header.source_stride[k];
        if (!header.flat) target_row -= static_cast<Stride>(extent[k]) * header.target_stride[k];
      }
      place = Place<Index>{row, target_row, 0, length};
    }
  }

 private:
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

  static constexpr long long kPrefetch = 8192;  // bytes to fetch ahead of use

  template <class Index>
  static GPUSLICE_INLINE typename Signed<Index>::type prefetch_distance(const Header<Index>& header, Index length,
                                                                        int width) {
    using Stride = typename Signed<Index>::type;
    const Stride stride = header.source_stride[header.rank - 1], bytes = static_cast<Stride>(length) * width;
    if (header.rank == 1 || bytes >= kPrefetch) return stride < 0 ? -kPrefetch / 8 : 0;
    return header.source_stride[header.rank - 2] * (kPrefetch / bytes + 1);
  }

  // Move `count` items of one run. The last ones of a dense run are moved as a vector that overlaps the one before.
  template <class Body, class Index>
  static GPUSLICE_INLINE void run(const Body& body, Place<Index> place, Index count,
                                  typename Signed<Index>::type stride, typename Signed<Index>::type ahead,
                                  bool stream) {
    constexpr Index kItems = Body::kItems;
    if (stream)
      for (; count && reinterpret_cast<uintptr_t>(place.target) % kVectorBytes; --count) {
        body.item(place.target, place.source);
        step<Body, Index>(place, stride, 1);
      }
    Index vectors = count / kItems;
    if constexpr (!Body::kDense && Body::kVectors > 0) {
      // The bytes after the last item of a run are not read, so the last vector may have to go item by item.
      const Index readable = (place.room - 1) / kItems;
      if (vectors > readable) vectors = readable;
    }
    if (stream)
      move_vectors<true>(body, place, vectors, stride, ahead);
    else
      move_vectors<false>(body, place, vectors, stride, ahead);
    Index rest = count - vectors * kItems;
    if (Body::kDense && vectors && rest) {
      step<Body, Index>(place, stride, rest - kItems);
      body.template store<false>(place.target, body.load(place.source, stride));
      return;
    }
    for (; rest; --rest) {
      body.item(place.target, place.source);
      step<Body, Index>(place, stride, 1);
    }
  }

  template <bool Stream, class Body, class Index>
  static GPUSLICE_INLINE void move_vectors(const Body& body, Place<Index>& place, Index vectors,
                                           typename Signed<Index>::type stride, typename Signed<Index>::type ahead) {
    for (Index v = 0; v < vectors; ++v) {
      if (ahead) __builtin_prefetch(reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(place.source) + ahead));
      body.template store<Stream>(place.target, body.load(place.source, stride));
      step<Body, Index>(place, stride, Body::kItems);
    }
  }

  template <class Body, class Index>
  static GPUSLICE_INLINE void step(Place<Index>& place, typename Signed<Index>::type stride, Index items) {
    const auto signed_items = static_cast<typename Signed<Index>::type>(items);  // negative to step back
    place.source += signed_items * stride;
    place.target += signed_items * Body::kWidth;
    place.room -= items;
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
