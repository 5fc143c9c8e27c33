// What the CUDA executor provides: 16-byte vectors, and the map from the threads of a block to the items of its tile.
//
// A thread takes a few vectors that lie a block's width apart, so that neighbouring threads touch neighbouring bytes;
// it loads all of them before it stores the first, which keeps that many loads in flight.
#pragma once

#define GPUSLICE_INLINE __device__ __forceinline__

#include "geometry.cuh"

// What is done at each access to an item, which bench/traffic/ counts; vectors go through __ldg and __stcs.
#ifndef GPUSLICE_ON_LOAD
#define GPUSLICE_ON_LOAD(address)
#define GPUSLICE_ON_STORE(address)
#endif

namespace gpuslice {

#ifndef GPUSLICE_THREADS  // the fuzz has fewer, which makes it quicker and reaches the edges of smaller tiles
#define GPUSLICE_THREADS 256
#endif
constexpr int kThreads = GPUSLICE_THREADS;
constexpr int kBlocks = 4;  // that a multiprocessor can hold, at least

struct Cuda {
  using Vector = uint4;
  static constexpr int kInFlight = 4;  // vectors of a thread, or those of one item where it has more
  static constexpr int kPadding = 4;   // bytes a row of a tile in shared memory, whose banks are that wide

  static GPUSLICE_INLINE unsigned divide(unsigned n, Divisor<unsigned> by) {
    return by.value == 1 ? n : (__umulhi(n, by.magic) + n) >> (32 - __clz(static_cast<int>(by.value - 1)));
  }

  static GPUSLICE_INLINE unsigned long long divide(unsigned long long n, Divisor<unsigned long long> by) {
    return by.value == 1 ? n : (__umul64hi(n, by.magic) + n) >> (64 - __clzll(static_cast<long long>(by.value - 1)));
  }

  // Sources are never written by the kernel that reads them, so they may come through the read-only path.
  static GPUSLICE_INLINE Vector load_aligned(const char* source) {
    return __ldg(reinterpret_cast<const uint4*>(source));
  }

  // 16 bytes from any address: out of two aligned vectors.
  static GPUSLICE_INLINE Vector load(const char* source) {
    const unsigned offset = static_cast<unsigned>(reinterpret_cast<unsigned long long>(source) & 15);
    if (offset == 0) return load_aligned(source);
    const Vector a = load_aligned(source - offset), b = load_aligned(source - offset + kVectorBytes);
    return spliced(a, b, offset);
  }

  // Where a part's source begins, and its bytes to the end. It is one array, so that what lies between its runs may be
  // read too.
  template <class Index>
  struct Span {
    const char* low;
    Index bytes;
  };

  // Whether `vectors` can be read from `first` on without touching a byte outside of the span.
  template <class Index>
  static GPUSLICE_INLINE bool readable(const char* first, int vectors, const Span<Index>& span) {
    const unsigned offset = static_cast<unsigned>(reinterpret_cast<unsigned long long>(first) & 15);
    // What begins before the span is far behind it here.
    const Index begin = static_cast<Index>(first - offset - span.low);
    return begin <= span.bytes && begin + (vectors + (offset != 0)) * kVectorBytes <= span.bytes;
  }

  template <bool Stream>
  static GPUSLICE_INLINE void store(char* target, Vector v) {
    __stcs(reinterpret_cast<uint4*>(target), v);
  }

  static GPUSLICE_INLINE bool storable(const char* target) {
    return reinterpret_cast<unsigned long long>(target) % kVectorBytes == 0;
  }

  template <int Width>
  static GPUSLICE_INLINE void item(char* target, const char* source) {
    using T = typename Item<Width>::type;
    store_as<T>(target, load_as<T>(source));
  }

  // Up to a vector's items to shared memory.
  template <int Width>
  static GPUSLICE_INLINE void copy_items(char* target, const char* source, unsigned count) {
    if (count * Width == kVectorBytes && storable(source)) return scatter<Width>(target, load_aligned(source));
    for (unsigned i = 0; i < count; ++i) item<Width>(target + i * Width, source + i * Width);
  }

  // Aligned vectors to shared memory, each thread's all loaded before the first is stored.
  template <int Width, unsigned Count, class Source, class Target>
  static GPUSLICE_INLINE void scatter_each(const Source& source, const Target& target) {
    constexpr unsigned kRounds = Count / kThreads;
    static_assert(Count % kThreads == 0);
    Vector vector[kRounds];
#pragma unroll
    for (unsigned i = 0; i < kRounds; ++i) vector[i] = load_aligned(source(threadIdx.x + i * kThreads));
#pragma unroll
    for (unsigned i = 0; i < kRounds; ++i) scatter<Width>(target(threadIdx.x + i * kThreads), vector[i]);
  }

  template <int Width>
  static GPUSLICE_INLINE Vector gather(const char* source, long long stride) {
    using T = typename Item<Width>::type;
    const auto read = [&](int i) { return load_as<T>(source + i * stride); };
    if constexpr (Width == 16) {
      return read(0);
    } else if constexpr (Width == 8) {
      const T a = read(0), b = read(1);
      return make_uint4(a.x, a.y, b.x, b.y);
    } else {
      unsigned word[4] = {0, 0, 0, 0};
#pragma unroll
      for (int i = 0; i < kVectorBytes / Width; ++i)
        word[i * Width / 4] |= static_cast<unsigned>(read(i)) << (i * Width % 4 * 8);
      return make_uint4(word[0], word[1], word[2], word[3]);
    }
  }

  template <class Map, int In, int Out>
  static GPUSLICE_INLINE void permute(const Vector (&in)[In], Vector (&out)[Out]) {
    unsigned from[4 * In], to[4 * Out];
#pragma unroll
    for (int i = 0; i < In; ++i) {
      from[4 * i] = in[i].x;
      from[4 * i + 1] = in[i].y;
      from[4 * i + 2] = in[i].z;
      from[4 * i + 3] = in[i].w;
    }
#pragma unroll
    for (int i = 0; i < 4 * Out; ++i) {
      // Two bytes a permute, then the two halves; what is a whole word already costs nothing.
      const int a = Map::from(4 * i), b = Map::from(4 * i + 1), c = Map::from(4 * i + 2), d = Map::from(4 * i + 3);
      if (a % 4 == 0 && b == a + 1 && c == a + 2 && d == a + 3) {
        to[i] = from[a / 4];
      } else {
        const unsigned low = __byte_perm(from[a / 4], from[b / 4], a % 4 | (4 + b % 4) << 4);
        const unsigned high = __byte_perm(from[c / 4], from[d / 4], c % 4 | (4 + d % 4) << 4);
        to[i] = __byte_perm(low, high, 0x5410);
      }
    }
#pragma unroll
    for (int i = 0; i < Out; ++i) out[i] = make_uint4(to[4 * i], to[4 * i + 1], to[4 * i + 2], to[4 * i + 3]);
  }

  static constexpr bool kTransposes = false;

  template <int Width>
  static constexpr GPUSLICE_INLINE unsigned tile_run() {
    return Width == 1 ? 128 : Width == 2 ? 64 : 32;
  }

  template <int Width>
  static constexpr GPUSLICE_INLINE unsigned tile_unit() {
    return tile_run<Width>();
  }

  template <class Function>
  static GPUSLICE_INLINE void for_each(unsigned count, Function&& function) {
    for (unsigned i = threadIdx.x; i < count; i += kThreads) function(i);
  }

  static GPUSLICE_INLINE void barrier() { __syncthreads(); }

  // Move a tile, a batch of vectors of the target at a time.
  template <class Body, class Index>
  static GPUSLICE_INLINE void walk(const Body& body, const Header<Index>& header, const Tile<Index>& tile) {
    using Stride = typename Signed<Index>::type;
    const Stride stride = Body::kStride ? Stride(Body::kStride) : header.source_stride[header.rank - 1];
    constexpr Index kStep = Index(kThreads) * Body::kItems * batch<Body>();
    constexpr Index kSpan = kStep - Index(kThreads - 1) * Body::kItems;
    const Span<Index> span = span_of(header, tile, Body::kSourceWidth);
    Index at = tile.begin + items_ahead<Body>(header, tile) + threadIdx.x * Body::kItems;
    if (batch<Body>() > 1 && axis(header, tile, header.rank - 1).value >= kSpan)
      for (; at + kSpan <= tile.end; at += kStep)
        if (!move_in_run(body, span, place_of<Cuda, Index, Body::kWidth>(header, tile, at), stride)) break;
    for (; at < tile.end; at += kStep) move_apart(body, span, header, tile, at, stride);
    at = tile.begin + threadIdx.x;
    if (threadIdx.x < items_ahead<Body>(header, tile) && at < tile.end) {
      const Place<Index> place = place_of<Cuda, Index, Body::kWidth>(header, tile, at);
      body.item(place.target, place.source);
    }
  }

 private:
  template <int Width>
  struct Item;

  // How many vectors' worth of items a thread takes at once: fewer where one has several, for want of registers.
  template <class Body>
  static constexpr GPUSLICE_INLINE int batch() {
    constexpr int kVectors = sizeof(typename Body::Registers) / kVectorBytes;
    if (Body::kStride == 0 && Body::kItems > 8) return kInFlight / 2;  // gathered from bytes
    return kInFlight / kVectors;
  }

  // The items of a tile before the first vector of a contiguous target.
  template <class Body, class Index>
  static GPUSLICE_INLINE Index items_ahead(const Header<Index>& header, const Tile<Index>& tile) {
    if (!Body::kOneVector || !header.flat) return 0;
    const auto first = reinterpret_cast<unsigned long long>(tile.target + tile.begin * Body::kWidth);
    return static_cast<Index>((0 - first) % kVectorBytes / Body::kWidth);
  }

  // A batch that is in one run, so that its place is found once; false where it is not or can't be moved whole.
  template <class Body, class Index, class Stride>
  static GPUSLICE_INLINE bool move_in_run(const Body& body, const Span<Index>& span, const Place<Index>& first,
                                          Stride stride) {
    constexpr Index kStep = Index(kThreads) * Body::kItems, kLast = (batch<Body>() - 1) * kStep;
    if (first.room <= kLast) return false;
    const Place<Index> last{first.source + static_cast<Stride>(kLast) * stride, first.target + kLast * Body::kWidth,
                            first.done + kLast, first.room - kLast};
    if (!loadable(body, span, first) || !loadable(body, span, last)) return false;
    typename Body::Registers registers[batch<Body>()];
#pragma unroll
    for (int i = 0; i < batch<Body>(); ++i)
      registers[i] = body.load(first.source + static_cast<Stride>(i * kStep) * stride, stride);
#pragma unroll
    for (int i = 0; i < batch<Body>(); ++i)
      body.template store<true>(first.target + i * kStep * Body::kWidth, registers[i]);
    return true;
  }

  // A batch of vectors that each have a place of their own, and may have to go item by item.
  template <class Body, class Index, class Stride>
  static GPUSLICE_INLINE void move_apart(const Body& body, const Span<Index>& span, const Header<Index>& header,
                                         const Tile<Index>& tile, Index at, Stride stride) {
    constexpr Index kStep = Index(kThreads) * Body::kItems;
    typename Body::Registers registers[batch<Body>()];
    char* target[batch<Body>()];
    unsigned whole = 0;
#pragma unroll
    for (int i = 0; i < batch<Body>(); ++i) {
      const Index item = at + i * kStep;
      if (item + Body::kItems > tile.end) continue;
      const Place<Index> place = place_of<Cuda, Index, Body::kWidth>(header, tile, item);
      if (!loadable(body, span, place)) continue;
      registers[i] = body.load(place.source, stride);
      target[i] = place.target;
      whole |= 1u << i;
    }
#pragma unroll
    for (int i = 0; i < batch<Body>(); ++i)
      if (whole >> i & 1) body.template store<true>(target[i], registers[i]);
    if (whole + 1 == 1u << batch<Body>()) return;
#pragma unroll 1
    for (int i = 0; i < batch<Body>(); ++i) {
      const Index item = at + i * kStep;
      if (whole >> i & 1 || item >= tile.end) continue;
      if constexpr (Body::kOneVector && Body::kItems > 1 && Body::kVectors <= 2)  // for more there are no registers
        if (move_across(body, span, header, tile, item, stride)) continue;
      move_items(body, header, tile, item, stride);
    }
  }

  template <class Body, class Index>
  static GPUSLICE_INLINE bool loadable(const Body& body, const Span<Index>& span, const Place<Index>& place) {
    return place.room >= Body::kItems && body.storable(place.target) && readable(body, span, place.source);
  }

  template <class Body, class Index>
  static GPUSLICE_INLINE bool readable(const Body&, const Span<Index>& span, const char* source) {
    return Body::kVectors == 0 || readable(Body::first(source), Body::kVectors, span);
  }

  // A vector that ends one run and begins the next, where the target goes on: out of the last whole vector of the one
  // and the first of the other. False where it is not that, or runs are shorter than a vector.
  template <class Body, class Index, class Stride>
  static GPUSLICE_INLINE bool move_across(const Body& body, const Span<Index>& span, const Header<Index>& header,
                                          const Tile<Index>& tile, Index item, Stride stride) {
    if (!header.flat || item + Body::kItems > tile.end) return false;
    const Place<Index> end = place_of<Cuda, Index, Body::kWidth>(header, tile, item);
    if (end.room >= Body::kItems || end.room + end.done < Body::kItems || !body.storable(end.target)) return false;
    const Place<Index> begin = place_of<Cuda, Index, Body::kWidth>(header, tile, item + end.room);
    const Index before = Body::kItems - end.room;
    const char* last = end.source - static_cast<Stride>(before) * stride;
    if (!readable(body, span, last) || !readable(body, span, begin.source)) return false;
    const typename Body::Registers a = body.load(last, stride), b = body.load(begin.source, stride);
    body.template store<true>(end.target, {spliced(a.vector, b.vector, before * Body::kWidth)});
    return true;
  }

  template <class Index>
  static GPUSLICE_INLINE Span<Index> span_of(const Header<Index>& header, const Tile<Index>& tile, int width) {
    using Stride = typename Signed<Index>::type;
    Span<Index> span{tile.source, static_cast<Index>(width)};
#pragma unroll 1
    for (unsigned k = 0; k < header.rank; ++k) {
      const Stride reach = static_cast<Stride>(axis(header, tile, k).value - 1) * header.source_stride[k];
      if (reach < 0) span.low += reach;
      span.bytes += static_cast<Index>(reach < 0 ? -reach : reach);
    }
    return span;
  }

  // The items of one vector that is not whole: the end of a run and the beginning of the next, or the end of a tile.
  template <class Body, class Index, class Stride>
  static GPUSLICE_INLINE void move_items(const Body& body, const Header<Index>& header, const Tile<Index>& tile,
                                         Index item, Stride stride) {
    const Index end = item + Body::kItems < tile.end ? item + Body::kItems : tile.end;
    Place<Index> place{nullptr, nullptr, 0, 0};
#pragma unroll 1
    for (;;) {
      if (!place.room) place = place_of<Cuda, Index, Body::kWidth>(header, tile, item);
      body.item(place.target, place.source);
      if (++item >= end) return;
      --place.room;
      place.source += stride;
      place.target += Body::kWidth;
    }
  }

  // A vector to shared memory that is aligned to an item, or to a word where items are smaller.
  template <int Width>
  static GPUSLICE_INLINE void scatter(char* target, Vector v) {
    if constexpr (Width == 16) {
      *reinterpret_cast<uint4*>(target) = v;
    } else if constexpr (Width == 8) {
      reinterpret_cast<uint2*>(target)[0] = make_uint2(v.x, v.y);
      reinterpret_cast<uint2*>(target)[1] = make_uint2(v.z, v.w);
    } else {
      unsigned* words = reinterpret_cast<unsigned*>(target);
      words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
    }
  }

  // The 16 bytes from an offset on in two vectors: of their 8 words 5 that are shifted into 4.
  static GPUSLICE_INLINE Vector spliced(Vector a, Vector b, unsigned offset) {
    const unsigned bits = offset % 4 * 8;
    switch (offset / 4) {
      case 0:
        return shifted(a.x, a.y, a.z, a.w, b.x, bits);
      case 1:
        return shifted(a.y, a.z, a.w, b.x, b.y, bits);
      case 2:
        return shifted(a.z, a.w, b.x, b.y, b.z, bits);
      default:
        return shifted(a.w, b.x, b.y, b.z, b.w, bits);
    }
  }

  static GPUSLICE_INLINE Vector shifted(unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned bits) {
    return make_uint4(__funnelshift_r(a, b, bits), __funnelshift_r(b, c, bits), __funnelshift_r(c, d, bits),
                      __funnelshift_r(d, e, bits));
  }

  template <class T>
  static GPUSLICE_INLINE T load_as(const char* source) {
    GPUSLICE_ON_LOAD(reinterpret_cast<const T*>(source));
    return *reinterpret_cast<const T*>(source);
  }

  template <class T>
  static GPUSLICE_INLINE void store_as(char* target, T value) {
    GPUSLICE_ON_STORE(reinterpret_cast<T*>(target));
    *reinterpret_cast<T*>(target) = value;
  }
};

template <>
struct Cuda::Item<1> {
  using type = unsigned char;
};
template <>
struct Cuda::Item<2> {
  using type = unsigned short;
};
template <>
struct Cuda::Item<4> {
  using type = unsigned;
};
template <>
struct Cuda::Item<8> {
  using type = uint2;
};
template <>
struct Cuda::Item<16> {
  using type = uint4;
};

}  // namespace gpuslice
