// Permutations of bytes between vectors, as compile-time maps: from(i) is the byte of the vectors read that becomes
// byte i of the vectors written. The executors' permute<Map>() turns a map into instructions.
#pragma once

#include "sources.cuh"

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

// As many pixels as a vector has items: interleaved in the source, part after part in the result. Backward reverses the
// order of the pixels.
template <int Width, int Variant, bool Backward>
struct Deinterleave {
  static constexpr GPUSLICE_INLINE int from(int byte) {
    using P = Parts<Variant>;
    const int part = P::part_of(byte / kVectorBytes), inside = byte - P::first(part) * kVectorBytes;
    const int pixel = inside / (P::items(part) * Width), item = P::first(part) + inside / Width % P::items(part);
    const int taken = Backward ? kVectorBytes / Width - 1 - pixel : pixel;
    return (taken * P::kItems + item) * Width + byte % Width;
  }
};

// The inverse: part after part in the sources, interleaved in the result.
template <int Width, int Variant, bool Backward>
struct Interleave {
  static constexpr GPUSLICE_INLINE int from(int byte) {
    using P = Parts<Variant>;
    const int pixel = byte / (P::kItems * Width), item = byte / Width % P::kItems, part = P::part_of(item);
    const int taken = Backward ? kVectorBytes / Width - 1 - pixel : pixel;
    const int inside = (taken * P::items(part) + item - P::first(part)) * Width + byte % Width;
    return P::first(part) * kVectorBytes + inside;
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

// As many pixels as a vector has items, of Channels items each: every Step-th of the pixels in Step * Channels vectors.
template <int Width, int Channels, int Step>
struct TakePixels {
  static constexpr GPUSLICE_INLINE int from(int byte) {
    return byte / (Channels * Width) * (Channels * Width) * Step + byte % (Channels * Width);
  }
};

// As many pixels of three items as a vector has items: from as many times four items, of which the first or the last
// does not belong to a pixel.
template <int Width, bool Last>
struct PackPixels {
  static constexpr GPUSLICE_INLINE int from(int byte) {
    return byte / (3 * Width) * 4 * Width + (Last ? Width : 0) + byte % (3 * Width);
  }
};

// One column of Rows rows of pixels that have three channels, and together three words in each row: the pixels one
// after the other. Reversed reverses the channels of each. Bytes behind the last pixel are any.
template <int Width, int Rows, int Column, bool Reversed>
struct PixelColumn {
  static constexpr GPUSLICE_INLINE int from(int byte) {
    const int pixel = 3 * Width, row = byte < Rows * pixel ? byte / pixel : Rows - 1, channel = byte / Width % 3;
    return 12 * row + Column * pixel + (Reversed ? 2 - channel : channel) * Width + byte % Width;
  }
};

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
