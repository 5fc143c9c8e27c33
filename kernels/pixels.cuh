// Pixels: 2 to 4 interleaved channels, read once. Planes separates them, one target per channel; Rearranged keeps them
// interleaved and reverses the pixels, the channels of each pixel, or both.
//
// One thread's job: read one vector per channel, which hold as many pixels as a vector has items, permute them in
// registers, and name the places of as many vectors.
// Limits: widths 1, 2 and 4; 2 to 4 channels. Width is the bytes of one channel of a pixel. The parameters count
// pixels: what geometry.cuh calls an item is a whole pixel here. A run is a row of pixels, dense in the source, forward
// or backward.
// Launch shape: one block per tile. Planes has one part, whose table of targets holds one address per channel.
#pragma once

#include "executor.h"
#include "geometry.cuh"
#include "permute.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

template <class Index, int Width, int Channels, bool Backward>
struct Pixels {
  using Stride = typename Signed<Index>::type;
  static constexpr int kItems = kVectorBytes / Width;  // pixels at a time
  static constexpr int kSourceWidth = Width * Channels;
  static constexpr int kRead = Channels;
  static constexpr int kWritten = Channels;
  static constexpr int kStride = Backward ? -kSourceWidth : kSourceWidth;
  static constexpr bool kDense = true;

  struct Registers {
    Vector128 vector[kWritten];
  };

  // The lowest byte of the pixels from `source` on. kRead vectors from there have exactly the bytes of kItems pixels.
  static GPUSLICE_INLINE const char* first(const char* source) {
    return Backward ? source + Channels * (Width - kVectorBytes) : source;
  }

 protected:
  template <class Map>
  static GPUSLICE_INLINE Registers permuted(const Vector128 (&read)[kRead]) {
    Registers registers;
    permute<Map>(read, registers.vector);
    return registers;
  }
};

template <class Index, int Width, int Channels, bool Backward>
struct Planes : Pixels<Index, Width, Channels, Backward> {
  using Base = Pixels<Index, Width, Channels, Backward>;
  using typename Base::Registers;
  static constexpr int kWidth = Width;
  static constexpr bool kOneTarget = false;
  long long plane[Channels];  // bytes from the target of channel 0 to that of each

  GPUSLICE_INLINE explicit Planes(const unsigned long long* targets) {
    for (int i = 0; i < Channels; ++i) plane[i] = static_cast<long long>(targets[i] - targets[0]);
  }

  GPUSLICE_INLINE Registers taken(const Vector128 (&read)[Channels]) const {
    return Base::template permuted<Deinterleave<Width, Channels, Backward>>(read);
  }

  GPUSLICE_INLINE char* place(char* target, int i) const { return target + plane[i]; }

  GPUSLICE_INLINE void item(char* target, const char* source) const {
    for (int i = 0; i < Channels; ++i) copy_item<Width>(target + plane[i], source + i * Width);
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
