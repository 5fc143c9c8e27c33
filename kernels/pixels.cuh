// Pixels: items that lie interleaved, read once. Planes separates their channels, one target per part of a pixel;
// Interleaved is the inverse, with one source per part; Rearranged keeps one source and one target, and reverses the
// pixels, the channels of each pixel, or both.
//
// One thread's job: read as many vectors as a pixel has items, which hold as many pixels as a vector has items, permute
// them in registers, and name the places of as many vectors.
// Limits: 2 to 4 items. Width is the bytes of one of them; Planes and Rearranged: 1, 2 and 4. The parameters count
// pixels: what geometry.cuh calls an item is a whole pixel here. A run is a row of pixels, dense in each source,
// forward or backward. Launch shape: one block per tile. Planes and Interleaved have one part of the geometry; the
// table of targets, or of sources, holds one address per part of a pixel. Addresses and strides of that side are as for
// parts of one item; a part of several items is as many times as far from its beginning.
#pragma once

#include "executor.h"
#include "geometry.cuh"
#include "permute.cuh"
#include "sources.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

template <class Index, int Width, int Items, bool Backward>
struct Pixels : OneSource<Items> {
  using Stride = typename Signed<Index>::type;
  static constexpr int kItems = kVectorBytes / Width;  // pixels at a time
  static constexpr int kSourceWidth = Width * Items;
  static constexpr int kRead = Items;
  static constexpr int kWritten = Items;
  static constexpr int kStride = Backward ? -kSourceWidth : kSourceWidth;
  static constexpr bool kDense = true;
  static constexpr bool kReadsBetween = false;

  struct Registers {
    Vector128 vector[kWritten];
  };

  // The lowest byte of the pixels from `source` on. kRead vectors from there have exactly the bytes of kItems pixels.
  static GPUSLICE_INLINE const char* first(const char* source) {
    return Backward ? source + Items * (Width - kVectorBytes) : source;
  }

 protected:
  template <class Map>
  static GPUSLICE_INLINE Registers permuted(const Vector128 (&read)[kRead]) {
    Registers registers;
    permute<Map>(read, registers.vector);
    return registers;
  }
};

// Whether four channels are permuted as two pairs, twice: each byte of a result then comes from two vectors, not four.
// On CUDA it is fewer permutes for single bytes only, because a permute takes two words whatever their bytes.
template <int Width, int Variant>
constexpr bool kInTwoSteps = Variant == 4 && (Width == 1 || !GPUSLICE_CUDA);

// Make two vectors of two.
template <class Map>
GPUSLICE_INLINE void pairs(Vector128 a, Vector128 b, Vector128& first, Vector128& second) {
  const Vector128 in[2] = {a, b};
  Vector128 out[2];
  permute<Map>(in, out);
  first = out[0];
  second = out[1];
}

template <class Index, int Width, int Variant, bool Backward>
struct Planes : Pixels<Index, Width, Parts<Variant>::kItems, Backward> {
  using Base = Pixels<Index, Width, Parts<Variant>::kItems, Backward>;
  using typename Base::Registers;
  static constexpr int kWidth = Width;
  static constexpr bool kOneTarget = false;
  static constexpr int kTargets = Parts<Variant>::kParts;
  static constexpr int kMostItems = Parts<Variant>::items(0) > Parts<Variant>::items(1) ? Parts<Variant>::items(0)
                                                                                        : Parts<Variant>::items(1);
  PartAddresses<Variant> targets;

  GPUSLICE_INLINE explicit Planes(const unsigned long long* table) : targets(table) {}

  GPUSLICE_INLINE Registers taken(const Vector128 (&read)[Base::kRead]) const {
    if constexpr (!kInTwoSteps<Width, Variant>) {
      return Base::template permuted<Deinterleave<Width, Variant, Backward>>(read);
    } else {
      Vector128 even[2], odd[2], of_even[2], of_odd[2];
      pairs<Deinterleave<Width, 2, false>>(read[0], read[1], even[0], odd[0]);
      pairs<Deinterleave<Width, 2, false>>(read[2], read[3], even[1], odd[1]);
      permute<Deinterleave<Width, 2, Backward>>(even, of_even);
      permute<Deinterleave<Width, 2, Backward>>(odd, of_odd);
      return {{of_even[0], of_odd[0], of_even[1], of_odd[1]}};
    }
  }

  GPUSLICE_INLINE char* place(char* target, int i) const { return reinterpret_cast<char*>(targets.vector(target, i)); }

  // Where the items of one part of a pixel go, how many they are, and which part a vector or an item belongs to.
  GPUSLICE_INLINE char* target_at(char* target, int p) const { return reinterpret_cast<char*>(targets.of(target, p)); }
  static constexpr GPUSLICE_INLINE int items(int p) { return Parts<Variant>::items(p); }
  static constexpr GPUSLICE_INLINE int part_of(int i) { return Parts<Variant>::part_of(i); }
  static constexpr GPUSLICE_INLINE int first_of(int p) { return Parts<Variant>::first(p); }

  GPUSLICE_INLINE void item(char* target, const char* source) const {
    for (int i = 0; i < Base::kWritten; ++i)
      copy_item<Width>(reinterpret_cast<char*>(targets.template item<Width>(target, i)), source + i * Width);
  }
};

template <class Index, int Width, int Variant, bool Backward>
struct Interleaved : Pixels<Index, Width, Parts<Variant>::kItems, Backward> {
  using Base = Pixels<Index, Width, Parts<Variant>::kItems, Backward>;
  using typename Base::Registers;
  static constexpr int kWidth = Width * Parts<Variant>::kItems;
  static constexpr int kSourceWidth = Width;
  static constexpr int kSources = Parts<Variant>::kParts;
  static constexpr int kStride = Backward ? -Width : Width;
  static constexpr bool kOneTarget = true;
  PartAddresses<Variant> sources;

  GPUSLICE_INLINE explicit Interleaved(const unsigned long long* table) : sources(table) {}

  static GPUSLICE_INLINE const char* first(const char* source) {
    return Backward ? source + Width - kVectorBytes : source;
  }

  GPUSLICE_INLINE const char* source_at(const char* address, int s) const {
    return reinterpret_cast<const char*>(sources.of(address, s));
  }
  static constexpr GPUSLICE_INLINE int source_of(int i) { return Parts<Variant>::part_of(i); }
  static constexpr GPUSLICE_INLINE int first_vector(int s) { return Parts<Variant>::first(s); }
  static constexpr GPUSLICE_INLINE int vectors(int s) { return Parts<Variant>::items(s); }
  static constexpr GPUSLICE_INLINE int scale(int s) { return Parts<Variant>::items(s); }

  GPUSLICE_INLINE Registers taken(const Vector128 (&read)[Base::kRead]) const {
    if constexpr (!kInTwoSteps<Width, Variant>) {
      return Base::template permuted<Interleave<Width, Variant, Backward>>(read);
    } else {
      Vector128 even[2], odd[2];
      pairs<Interleave<Width, 2, Backward>>(read[0], read[2], even[0], even[1]);
      pairs<Interleave<Width, 2, Backward>>(read[1], read[3], odd[0], odd[1]);
      Registers registers;
      pairs<Interleave<Width, 2, false>>(even[0], odd[0], registers.vector[0], registers.vector[1]);
      pairs<Interleave<Width, 2, false>>(even[1], odd[1], registers.vector[2], registers.vector[3]);
      return registers;
    }
  }

  GPUSLICE_INLINE char* place(char* target, int i) const { return target + i * kVectorBytes; }

  GPUSLICE_INLINE void item(char* target, const char* source) const {
    for (int i = 0; i < Base::kWritten; ++i)
      copy_item<Width>(target + i * Width, reinterpret_cast<const char*>(sources.template item<Width>(source, i)));
  }
};

template <class Index, int Width, int Channels, bool Backward, bool Swapped>
struct Rearranged : Pixels<Index, Width, Channels, Backward> {
  using Base = Pixels<Index, Width, Channels, Backward>;
  using typename Base::Registers;
  static constexpr int kWidth = Width * Channels;
  static constexpr bool kOneTarget = true;

  GPUSLICE_INLINE Registers taken(const Vector128 (&read)[Channels]) const {
    return Base::template permuted<Rearrange<Width, Channels, Backward, Swapped>>(read);
  }

  GPUSLICE_INLINE char* place(char* target, int i) const { return target + i * kVectorBytes; }

  GPUSLICE_INLINE void item(char* target, const char* source) const {
    for (int i = 0; i < Channels; ++i)
      copy_item<Width>(target + i * Width, source + (Swapped ? Channels - 1 - i : i) * Width);
  }
};

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
