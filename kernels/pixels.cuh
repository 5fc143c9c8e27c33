// Pixels: 2 to 4 interleaved channels, read once. Planes takes them apart, one target a channel; Rearranged keeps them
// interleaved, with the pixels, the channels of each, or both turned round.
//
// An item of the geometry is a whole pixel; a run is a row of pixels, dense in the source, forward or backward.
#pragma once

#include "geometry.cuh"
#include "permute.cuh"

namespace gpuslice {

template <class Executor, class Index, int Width, int Channels, bool Backward>
struct Pixels {
  using Vector = typename Executor::Vector;
  using Stride = typename Signed<Index>::type;
  static constexpr int kItems = kVectorBytes / Width;  // pixels at a time: a vector a channel
  static constexpr int kSourceWidth = Width * Channels;
  static constexpr int kVectors = Channels;
  static constexpr int kStride = Backward ? -kSourceWidth : kSourceWidth;
  static constexpr bool kDense = true;
  static constexpr bool kOneVector = false;

  struct Registers {
    Vector vector[Channels];
  };

  static GPUSLICE_INLINE const char* first(const char* source) {
    return Backward ? source + Channels * (Width - kVectorBytes) : source;
  }

 protected:
  template <class Map>
  static GPUSLICE_INLINE Registers permuted(const char* source) {
    Vector read[Channels];
    for (int i = 0; i < Channels; ++i) read[i] = Executor::load(first(source) + i * kVectorBytes);
    Registers registers;
    Executor::template permute<Map>(read, registers.vector);
    return registers;
  }
};

template <class Executor, class Index, int Width, int Channels, bool Backward>
struct Planes : Pixels<Executor, Index, Width, Channels, Backward> {
  using Base = Pixels<Executor, Index, Width, Channels, Backward>;
  using typename Base::Registers;
  static constexpr int kWidth = Width;
  static constexpr bool kOneTarget = false;
  long long plane[Channels];  // from the first target to each, in bytes

  GPUSLICE_INLINE Registers load(const char* source, typename Base::Stride) const {
    return Base::template permuted<Deinterleave<Width, Channels, Backward>>(source);
  }

  template <bool Stream>
  GPUSLICE_INLINE void store(char* target, const Registers& registers) const {
    for (int i = 0; i < Channels; ++i) Executor::template store<Stream>(target + plane[i], registers.vector[i]);
  }

  GPUSLICE_INLINE bool storable(const char* target) const {
    for (int i = 0; i < Channels; ++i)
      if (!Executor::storable(target + plane[i])) return false;
    return true;
  }

  GPUSLICE_INLINE void item(char* target, const char* source) const {
    for (int i = 0; i < Channels; ++i) Executor::template item<Width>(target + plane[i], source + i * Width);
  }
};

template <class Executor, class Index, int Width, int Channels, bool Backward, bool Swapped>
struct Rearranged : Pixels<Executor, Index, Width, Channels, Backward> {
  using Base = Pixels<Executor, Index, Width, Channels, Backward>;
  using typename Base::Registers;
  static constexpr int kWidth = Width * Channels;
  static constexpr bool kOneTarget = true;

  GPUSLICE_INLINE Registers load(const char* source, typename Base::Stride) const {
    return Base::template permuted<Rearrange<Width, Channels, Backward, Swapped>>(source);
  }

  template <bool Stream>
  GPUSLICE_INLINE void store(char* target, const Registers& registers) const {
    for (int i = 0; i < Channels; ++i) Executor::template store<Stream>(target + i * kVectorBytes, registers.vector[i]);
  }

  GPUSLICE_INLINE bool storable(const char* target) const { return Executor::storable(target); }

  GPUSLICE_INLINE void item(char* target, const char* source) const {
    for (int i = 0; i < Channels; ++i)
      Executor::template item<Width>(target + i * Width, source + (Swapped ? Channels - 1 - i : i) * Width);
  }
};

}  // namespace gpuslice
