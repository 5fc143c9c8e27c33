// The CUDA executor's vectors: 16 bytes in four registers, and what can be done with them.
//
// Sources are never written by the kernel that reads them, so vectors come through the read-only path (ld.global.nc).
// Targets are stored with the hint "cs" (cache streaming), because the kernel does not read them again.
#pragma once

#include "config.h"

namespace gpuslice {
inline namespace GPUSLICE_SET {

using Vector128 = uint4;

GPUSLICE_INLINE bool is_aligned(const char* address) {
  return reinterpret_cast<unsigned long long>(address) % kVectorBytes == 0;
}

// Load 16 bytes from an address that is aligned to 16.
GPUSLICE_INLINE Vector128 load128_aligned(const char* source) {
  return __ldg(reinterpret_cast<const Vector128*>(source));
}

// Store 16 bytes to an address that is aligned to 16, with the hint that they are not read again soon.
GPUSLICE_INLINE void store128cs(char* target, Vector128 v) { __stcs(reinterpret_cast<Vector128*>(target), v); }

// The 16 bytes from an offset on in two vectors. It has no branches, since threads of a warp may differ in the offset:
// of 8 words 6 are chosen, of these 5, which are shifted into 4.
GPUSLICE_INLINE Vector128 spliced(Vector128 a, Vector128 b, unsigned offset) {
  const bool two = offset & 8, one = offset & 4;
  const unsigned c[6] = {two ? a.z : a.x, two ? a.w : a.y, two ? b.x : a.z,
                         two ? b.y : a.w, two ? b.z : b.x, two ? b.w : b.y};
  unsigned d[5];
#pragma unroll
  for (int i = 0; i < 5; ++i) d[i] = one ? c[i + 1] : c[i];
  const unsigned bits = offset % 4 * 8;
  return make_uint4(__funnelshift_r(d[0], d[1], bits), __funnelshift_r(d[1], d[2], bits),
                    __funnelshift_r(d[2], d[3], bits), __funnelshift_r(d[3], d[4], bits));
}

template <int Width>
struct ItemOf;
template <>
struct ItemOf<1> {
  using type = unsigned char;
};
template <>
struct ItemOf<2> {
  using type = unsigned short;
};
template <>
struct ItemOf<4> {
  using type = unsigned;
};
template <>
struct ItemOf<8> {
  using type = uint2;
};
template <>
struct ItemOf<16> {
  using type = uint4;
};

// Copy one item, between addresses that are aligned to it, in global or shared memory.
template <int Width>
GPUSLICE_INLINE void copy_item(char* target, const char* source) {
  using Item = typename ItemOf<Width>::type;
  *reinterpret_cast<Item*>(target) = *reinterpret_cast<const Item*>(source);
}

// A vector of the items that `read` returns by their numbers.
template <int Width, class Read>
GPUSLICE_INLINE Vector128 assembled(const Read& read) {
  using Item = typename ItemOf<Width>::type;
  if constexpr (Width == 16) {
    return read(0);
  } else if constexpr (Width == 8) {
    const Item a = read(0), b = read(1);
    return make_uint4(a.x, a.y, b.x, b.y);
  } else {
    unsigned word[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < kVectorBytes / Width; ++i)
      word[i * Width / 4] |= static_cast<unsigned>(read(i)) << (i * Width % 4 * 8);
    return make_uint4(word[0], word[1], word[2], word[3]);
  }
}

// A vector of items that lie `stride` bytes apart.
template <int Width>
GPUSLICE_INLINE Vector128 gather(const char* source, long long stride) {
  return assembled<Width>(
      [&](int i) { return *reinterpret_cast<const typename ItemOf<Width>::type*>(source + i * stride); });
}

// As many pixels of three items as a vector has items, `stride` bytes apart.
template <int Width>
GPUSLICE_INLINE void gather_pixels(const char* source, long long stride, Vector128 (&out)[3]) {
  constexpr int kItems = kVectorBytes / Width;
#pragma unroll
  for (int i = 0; i < 3; ++i)
    out[i] = assembled<Width>([&](int j) {
      const int item = i * kItems + j;
      return *reinterpret_cast<const typename ItemOf<Width>::type*>(source + item / 3 * stride + item % 3 * Width);
    });
}

// Words made of the bytes of other words, as Map::from() says.
template <class Map, int In, int Out>
GPUSLICE_INLINE void permute(const unsigned (&from)[In], unsigned (&to)[Out]) {
#pragma unroll
  for (int i = 0; i < Out; ++i) {
    // A permute takes two words. Four words are two permutes, of two bytes each, and a third of their halves. A word
    // that stays whole costs nothing.
    const int a = Map::from(4 * i), b = Map::from(4 * i + 1), c = Map::from(4 * i + 2), d = Map::from(4 * i + 3);
    const int first = a / 4, other = b / 4 != first ? b / 4 : c / 4 != first ? c / 4 : d / 4;
    const auto is_one = [=](int byte) { return byte / 4 == first || byte / 4 == other; };
    const auto chosen = [=](int byte) { return byte % 4 + (byte / 4 == first ? 0 : 4); };
    if (a % 4 == 0 && b == a + 1 && c == a + 2 && d == a + 3) {
      to[i] = from[first];
    } else if (is_one(c) && is_one(d)) {
      to[i] = __byte_perm(from[first], from[other], chosen(a) | chosen(b) << 4 | chosen(c) << 8 | chosen(d) << 12);
    } else {
      const unsigned low = __byte_perm(from[a / 4], from[b / 4], a % 4 | (4 + b % 4) << 4);
      const unsigned high = __byte_perm(from[c / 4], from[d / 4], c % 4 | (4 + d % 4) << 4);
      to[i] = __byte_perm(low, high, 0x5410);
    }
  }
}

// Vectors made of the bytes of other vectors, as Map::from() says.
template <class Map, int In, int Out>
GPUSLICE_INLINE void permute(const Vector128 (&in)[In], Vector128 (&out)[Out]) {
  unsigned from[4 * In], to[4 * Out];
#pragma unroll
  for (int i = 0; i < In; ++i) {
    from[4 * i] = in[i].x;
    from[4 * i + 1] = in[i].y;
    from[4 * i + 2] = in[i].z;
    from[4 * i + 3] = in[i].w;
  }
  permute<Map>(from, to);
#pragma unroll
  for (int i = 0; i < Out; ++i) out[i] = make_uint4(to[4 * i], to[4 * i + 1], to[4 * i + 2], to[4 * i + 3]);
}

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
