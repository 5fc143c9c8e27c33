// Permutations of bytes between vectors, as compile-time maps: from(i) is the byte of the vectors read that becomes
// byte i of the vectors written. The executors' permute<Map>() turns a map into instructions.
#pragma once

#include "config.h"

namespace gpuslice {
inline namespace GPUSLICE_SET {

// Every Step-th item of |Step| vectors: from the first item on, or for a negative step from the last item backward.
// A step of 1 keeps a vector, -1 reverses it.
template <int Width, int Step>
struct Take {
  static constexpr GPUSLICE_INLINE int from(int byte) {
    const int first = Step > 0 ? 0 : -Step * kVectorBytes - Width;
    return first + byte / Width * Width * Step + byte % Width;
  }
};

// As many pixels as a vector has items, of Channels items each: interleaved in the source, one vector per channel in
// the result. Backward reverses the order of the pixels.
template <int Width, int Channels, bool Backward>
struct Deinterleave {
  static constexpr GPUSLICE_INLINE int from(int byte) {
    const int channel = byte / kVectorBytes, pixel = byte % kVectorBytes / Width;
    const int taken = Backward ? kVectorBytes / Width - 1 - pixel : pixel;
    return (taken * Channels + channel) * Width + byte % Width;
  }
};

// Interleaved pixels in another order: Backward reverses the pixels, Swapped the channels of each.
template <int Width, int Channels, bool Backward, bool Swapped>
struct Rearrange {
  static constexpr GPUSLICE_INLINE int from(int byte) {
    const int pixel = byte / (Channels * Width), channel = byte / Width % Channels;
    const int taken = Backward ? kVectorBytes / Width - 1 - pixel : pixel;
    return (taken * Channels + (Swapped ? Channels - 1 - channel : channel)) * Width + byte % Width;
  }
};

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
