// Byte permutations that the bodies are made of, as maps from a byte of the result to a byte of the source vectors.
#pragma once

namespace gpuslice {

// Every Step-th item of |Step| vectors: from the first item on, or where Step is negative from the last item backward.
// A step of 1 keeps a vector, -1 reverses it.
template <int Width, int Step>
struct Take {
  static constexpr GPUSLICE_INLINE int from(int byte) {
    const int first = Step > 0 ? 0 : -Step * kVectorBytes - Width;
    return first + byte / Width * Width * Step + byte % Width;
  }
};

// Pixels of Channels items each, as many as a vector has items: interleaved in the source, a vector a channel in the
// result. Backward turns the order of the pixels round.
template <int Width, int Channels, bool Backward>
struct Deinterleave {
  static constexpr GPUSLICE_INLINE int from(int byte) {
    const int channel = byte / kVectorBytes, pixel = byte % kVectorBytes / Width;
    const int taken = Backward ? kVectorBytes / Width - 1 - pixel : pixel;
    return (taken * Channels + channel) * Width + byte % Width;
  }
};

// Interleaved pixels in other order: the pixels, the channels of each, or both turned round.
template <int Width, int Channels, bool Backward, bool Swapped>
struct Rearrange {
  static constexpr GPUSLICE_INLINE int from(int byte) {
    const int pixel = byte / (Channels * Width), channel = byte / Width % Channels;
    const int taken = Backward ? kVectorBytes / Width - 1 - pixel : pixel;
    return (taken * Channels + (Swapped ? Channels - 1 - channel : channel)) * Width + byte % Width;
  }
};

}  // namespace gpuslice
