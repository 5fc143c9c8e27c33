// Rows of pixels of three channels that are Step pixels apart, or any stride apart (Step 0).
//
// One thread's job: as rows.cuh, for as many pixels as a vector has items, which fill three vectors. With a Step they
// are taken from whole vectors in registers; else each pixel is gathered. Limits: widths 1, 2 and 4, of one channel.
// Steps forward only; Step 0 takes any stride but 0. As in pixels.cuh the parameters count pixels. Launch shape: one
// block per tile.
#pragma once

#include "executor.h"
#include "geometry.cuh"
#include "permute.cuh"
#include "sources.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

template <class Index, int Width, int Step>
struct PixelRows : OneSource<Step * kPixelChannels> {
  static constexpr int kChannels = kPixelChannels;
  static constexpr int kWidth = kChannels * Width;  // what geometry.cuh calls an item is a whole pixel here
  static constexpr int kSourceWidth = kWidth;
  static constexpr int kItems = kVectorBytes / Width;
  static constexpr int kRead = Step * kChannels;
  static constexpr int kWritten = kChannels;
  static constexpr int kStride = Step * kWidth;
  static constexpr bool kDense = false;
  static constexpr bool kReadsBetween = true;
  static constexpr bool kOneTarget = true;

  struct Registers {
    Vector128 vector[kWritten];
  };

  static GPUSLICE_INLINE const char* first(const char* source) { return source; }

  template <int Read>
  GPUSLICE_INLINE Registers taken(const Vector128 (&read)[Read]) const {
    Registers registers;
    permute<TakePixels<Width, kChannels, Step>>(read, registers.vector);
    return registers;
  }

  static GPUSLICE_INLINE Registers gathered(const char* source, long long stride) {
    Registers registers;
    gather_pixels<Width>(source, stride, registers.vector);
    return registers;
  }

  GPUSLICE_INLINE char* place(char* target, int i) const { return target + i * kVectorBytes; }

  GPUSLICE_INLINE void item(char* target, const char* source) const {
    for (int i = 0; i < kChannels; ++i) copy_item<Width>(target + i * Width, source + i * Width);
  }
};

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
