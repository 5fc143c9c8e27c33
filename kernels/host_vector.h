// The host executor's vectors: 16 bytes of the compiler's vector type, and what can be done with them.
//
// A vector is 16 bytes for every instruction set. Wider registers serve streaming stores only: what the kernels do is
// bound by memory, and 16 bytes are what SSE, AVX and NEON shuffle in one instruction.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "config.h"
#include "permute.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

typedef unsigned char Vector128 __attribute__((vector_size(kVectorBytes)));

// A page of memory. Addresses so far apart share a set of the first-level cache.
constexpr long long kPageBytes = 4096;

// Load 16 bytes from any address; no other byte is read.
GPUSLICE_INLINE Vector128 load128(const char* source) {
  Vector128 v;
  memcpy(&v, source, sizeof v);
  return v;
}

// Store 16 bytes to any address.
GPUSLICE_INLINE void store128(char* target, Vector128 v) { memcpy(target, &v, sizeof v); }

// Store neighbours in the order of their addresses, or in the reverse order. Stores to a cache line take half as long
// if no store to another line comes between them, and a compiler would not keep an order.
template <bool Backward, int Count>
GPUSLICE_INLINE void store_in_order(char* target, const Vector128 (&v)[Count]) {
#pragma GCC unroll 8
  for (int j = 0; j < Count; ++j) {
    const int i = Backward ? Count - 1 - j : j;
    store128(target + i * kVectorBytes, v[i]);
    __asm__ volatile("" ::: "memory");
  }
}

template <int Bytes>
using Word = std::conditional_t<Bytes == 4, uint32_t, uint64_t>;

// Load the first bytes of a vector: 4, 8 or all 16.
template <int Bytes>
GPUSLICE_INLINE Vector128 load_first(const char* source) {
  if constexpr (Bytes == kVectorBytes) return load128(source);
  typedef Word<Bytes> Words __attribute__((vector_size(kVectorBytes)));
  Word<Bytes> word;
  memcpy(&word, source, Bytes);
  return reinterpret_cast<Vector128>(Words{word});
}

template <int Bytes>
GPUSLICE_INLINE void store_first(char* target, Vector128 v) {
  if constexpr (Bytes == kVectorBytes) return store128(target, v);
  typedef Word<Bytes> Words __attribute__((vector_size(kVectorBytes)));
  const Word<Bytes> word = reinterpret_cast<Words>(v)[0];
  memcpy(target, &word, Bytes);
}

// Whether there are stores past the caches. Other processors store through them.
#if defined(__SSE2__)
constexpr bool kStoresPastCaches = true;
#else
constexpr bool kStoresPastCaches = false;
#endif

// Store 16 bytes past the caches, to an address that is aligned to 16.
GPUSLICE_INLINE void store128cs(char* target, Vector128 v) {
#if defined(__SSE2__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(target), reinterpret_cast<__m128i>(v));
#else
  store128(target, v);
#endif
}

// Bytes of the widest store past the caches. Two of them fill a cache line. With four, written to several places in
// turns, some went to memory before their line was whole.
#if defined(__AVX__)
constexpr int kStreamBytes = 32;
#else
constexpr int kStreamBytes = kVectorBytes;
#endif

// Store neighbours past the caches. If Count is even, the address is aligned to kStreamBytes.
template <int Count>
GPUSLICE_INLINE void store_cs(char* target, const Vector128 (&v)[Count]) {
#if defined(__AVX__)
  if constexpr (Count % 2 == 0) {
#pragma GCC unroll 4
    for (int i = 0; i < Count; i += 2) {
      const __m256i pair = _mm256_set_m128i(reinterpret_cast<__m128i>(v[i + 1]), reinterpret_cast<__m128i>(v[i]));
      _mm256_stream_si256(reinterpret_cast<__m256i*>(target + i * kVectorBytes), pair);
    }
    return;
  }
#endif
#pragma GCC unroll 8
  for (int i = 0; i < Count; ++i) store128cs(target + i * kVectorBytes, v[i]);
}

// Copy a cache line past the caches, to an address that is aligned to one.
GPUSLICE_INLINE void copy_line_cs(char* target, const char* source) {
  Vector128 line[kLineBytes / kVectorBytes];
#pragma GCC unroll 4
  for (int i = 0; i < kLineBytes / kVectorBytes; ++i) line[i] = load128(source + i * kVectorBytes);
  store_cs(target, line);
}

// Store one or an even number of neighbours; past the caches the address is aligned to 16, not always to kStreamBytes.
template <bool Stream, bool Backward = false, int Count>
GPUSLICE_INLINE void store(char* target, const Vector128 (&v)[Count]) {
  if constexpr (!Stream) return store_in_order<Backward>(target, v);
  if (Count == 1 || reinterpret_cast<uintptr_t>(target) % kStreamBytes == 0) return store_cs(target, v);
  store128cs(target, v[0]);
  if constexpr (Count > 2) {
    Vector128 inner[Count - 2];
#pragma GCC unroll 8
    for (int i = 0; i < Count - 2; ++i) inner[i] = v[i + 1];
    store_cs(target + kVectorBytes, inner);
  }
  store128cs(target + (Count - 1) * kVectorBytes, v[Count - 1]);
}

template <int Width>
GPUSLICE_INLINE void copy_item(char* target, const char* source) {
  memcpy(target, source, Width);
}

// Fetch the cache line that lies `distance` bytes from an address. It may lie outside of the array.
GPUSLICE_INLINE void prefetch(const char* address, long long distance) {
  __builtin_prefetch(reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(address) + distance));
}

template <class Item, int... I>
GPUSLICE_INLINE Vector128 gathered(const char* source, long long stride, std::integer_sequence<int, I...>) {
  typedef Item Items __attribute__((vector_size(kVectorBytes)));
  const auto read = [&](int i) {
    Item item;
    memcpy(&item, source + i * stride, sizeof item);
    return item;
  };
  return reinterpret_cast<Vector128>(Items{read(I)...});
}

// A vector of items that lie `stride` bytes apart, put together in registers: a vector that is loaded right after the
// stores of its items would wait for them.
template <int Width>
GPUSLICE_INLINE Vector128 gather(const char* source, long long stride) {
  if constexpr (Width == 16) return load128(source);
  if constexpr (Width == 8) return gathered<uint64_t>(source, stride, std::make_integer_sequence<int, 2>{});
  if constexpr (Width == 4) return gathered<uint32_t>(source, stride, std::make_integer_sequence<int, 4>{});
  if constexpr (Width == 2) return gathered<uint16_t>(source, stride, std::make_integer_sequence<int, 8>{});
  if constexpr (Width == 1) return gathered<uint8_t>(source, stride, std::make_integer_sequence<int, 16>{});
}

// The bytes of a vector that another vector names, by numbers below 16.
GPUSLICE_INLINE Vector128 shuffled(Vector128 v, Vector128 from) {
#if defined(__SSSE3__)
  return reinterpret_cast<Vector128>(_mm_shuffle_epi8(reinterpret_cast<__m128i>(v), reinterpret_cast<__m128i>(from)));
#elif !defined(__clang__)
  return __builtin_shuffle(v, from);
#else
  Vector128 result;
  for (int i = 0; i < kVectorBytes; ++i) result[i] = v[from[i]];
  return result;
#endif
}

// A permutation folds the vectors read into one vector of the result, one after the other. Return which of the 32 bytes
// of two vectors becomes byte `to` if Map wants byte `from`: in the first round the two are the first two vectors read,
// later the result so far, in which the byte may be in place already or be missing yet, and the next vector read.
constexpr int folded_from(int round, int from, int to) {
  if (round == 0) return from < 2 * kVectorBytes ? from : to;
  const int next = from - (round + 1) * kVectorBytes;
  return next >= 0 && next < kVectorBytes ? kVectorBytes + next : to;
}

template <class Map, int Byte, int Round, int... I>
GPUSLICE_INLINE Vector128 folded(Vector128 before, Vector128 next, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(before, next, folded_from(Round, Map::from(Byte + I), I)...);
}

template <class Map, int Byte, int Round, int In>
GPUSLICE_INLINE Vector128 folded_all(Vector128 before, const Vector128 (&in)[In]) {
  const Vector128 now =
      folded<Map, Byte, Round>(before, in[In > 1 ? Round + 1 : 0], std::make_integer_sequence<int, 16>{});
  if constexpr (Round + 2 < In)
    return folded_all<Map, Byte, Round + 1>(now, in);
  else
    return now;
}

#if defined(__SSSE3__)
// The bytes of one of the vectors read that become bytes of the result; 0 in the other places.
template <class Map, int Byte, int From, int... I>
GPUSLICE_INLINE Vector128 taken_from(Vector128 v, std::integer_sequence<int, I...>) {
  constexpr unsigned char kZero = 0x80;
  constexpr auto from = [](int byte) { return byte / kVectorBytes == From ? byte % kVectorBytes : kZero; };
  return shuffled(v, Vector128{static_cast<unsigned char>(from(Map::from(Byte + I)))...});
}

// Fewer instructions than folding if bytes of many vectors meet.
template <class Map, int Byte, int From = 0, int In>
GPUSLICE_INLINE Vector128 taken_from_all(const Vector128 (&in)[In]) {
  const Vector128 now = taken_from<Map, Byte, From>(in[From], std::make_integer_sequence<int, 16>{});
  if constexpr (From + 1 < In)
    return now | taken_from_all<Map, Byte, From + 1>(in);
  else
    return now;
}
#endif

// How many of the vectors read have bytes of the vector of the result that begins at a byte.
template <class Map>
constexpr int vectors_used(int begin, int in) {
  int count = 0;
  for (int v = 0; v < in; ++v)
    for (int i = 0; i < kVectorBytes; ++i)
      if (Map::from(begin + i) / kVectorBytes == v) {
        ++count;
        break;
      }
  return count;
}

template <class Map, int Out = 0, int In, int Count>
GPUSLICE_INLINE void permute(const Vector128 (&in)[In], Vector128 (&out)[Count]) {
  constexpr int kByte = Out * kVectorBytes;
#if defined(__SSSE3__)
  if constexpr (In > 2 && vectors_used<Map>(kByte, In) == In)
    out[Out] = taken_from_all<Map, kByte>(in);
  else
#endif
    out[Out] = folded_all<Map, kByte, 0>(in[0], in);
  if constexpr (Out + 1 < Count) permute<Map, Out + 1>(in, out);
}

// As many pixels of three items as a vector has items, `stride` bytes apart. Each is read with the item beside it that
// is nearer to the next pixel.
template <int Width>
GPUSLICE_INLINE void gather_pixels(const char* source, long long stride, Vector128 (&out)[3]) {
  constexpr int kPixels = 4 / Width;  // in a vector, with an item more for each
  const char* from = stride < 0 ? source - Width : source;
  Vector128 read[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) read[i] = gather<4 * Width>(from + i * kPixels * stride, stride);
  if (stride < 0)
    permute<PackPixels<Width, true>>(read, out);
  else
    permute<PackPixels<Width, false>>(read, out);
}

// Load a vector's worth of items, from `source` on.
template <class Body>
GPUSLICE_INLINE typename Body::Registers load(const Body& body, const char* source, long long stride) {
  if constexpr (Body::kRead == 0) {
    return Body::gathered(source, stride);
  } else {
    Vector128 read[Body::kRead];
    for (int i = 0; i < Body::kRead; ++i) {
      const int s = Body::source_of(i);
      read[i] = load128(body.source_at(Body::first(source), s) + (i - Body::first_vector(s)) * kVectorBytes);
    }
    return body.taken(read);
  }
}

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
