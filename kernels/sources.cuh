// Where the vectors of a kernel's body come from: one source, or one for each part of a pixel.
//
// The sources of a body agree in what the header says of them, but for a factor: source s moves scale(s) times as many
// bytes as the strides of the header say.
#pragma once

#include "config.h"

namespace gpuslice {
inline namespace GPUSLICE_SET {

// Read vectors from one source.
template <int Read>
struct OneSource {
  static constexpr int kSources = 1;

  // The address in source s that belongs to an address, as the header counts.
  static GPUSLICE_INLINE const char* source_at(const char* address, int) { return address; }
  // The source of vector i.
  static constexpr GPUSLICE_INLINE int source_of(int) { return 0; }
  // The first vector of source s, and how many vectors it has.
  static constexpr GPUSLICE_INLINE int first_vector(int) { return 0; }
  static constexpr GPUSLICE_INLINE int vectors(int) { return Read; }
  static constexpr GPUSLICE_INLINE int scale(int) { return 1; }
};

// The items of a pixel as parts: the arrays that they come from or go to. Variant is the number of parts, if each has
// one item of a pixel, else two digits: the items of the first part and those of the second. The parts of as many
// pixels as a vector has items are whole vectors, one part after the other.
template <int Variant>
struct Parts {
  static constexpr int kParts = Variant < 10 ? Variant : 2;
  static constexpr int kItems = Variant < 10 ? Variant : Variant / 10 + Variant % 10;  // of a pixel

  static constexpr GPUSLICE_INLINE int items(int part) {
    return Variant < 10 ? 1 : part == 0 ? Variant / 10 : Variant % 10;
  }
  // The part that an item of a pixel belongs to, or a vector.
  static constexpr GPUSLICE_INLINE int part_of(int item) { return Variant < 10 ? item : item >= Variant / 10; }
  // The first item of a part, or its first vector.
  static constexpr GPUSLICE_INLINE int first(int part) { return Variant < 10 || part == 0 ? part : Variant / 10; }
};

// The addresses of the parts of a pixel, each from that of part 0 as it would be if it had one item.
template <int Variant>
class PartAddresses {
 public:
  GPUSLICE_INLINE explicit PartAddresses(const unsigned long long* table) {
    for (int i = 0; i < Parts<Variant>::kParts; ++i) origin_[i] = table[i] - Parts<Variant>::items(i) * table[0];
  }

  // Vector i of all parts.
  GPUSLICE_INLINE unsigned long long vector(const char* at, int i) const {
    const int part = Parts<Variant>::part_of(i);
    return of(at, part) + (i - Parts<Variant>::first(part)) * kVectorBytes;
  }

  // Item i of a pixel.
  template <int Width>
  GPUSLICE_INLINE unsigned long long item(const char* at, int i) const {
    const int part = Parts<Variant>::part_of(i);
    return of(at, part) + (i - Parts<Variant>::first(part)) * Width;
  }

  // A part.
  GPUSLICE_INLINE unsigned long long of(const char* at, int part) const {
    return origin_[part] + Parts<Variant>::items(part) * reinterpret_cast<unsigned long long>(at);
  }

 private:
  unsigned long long origin_[Parts<Variant>::kParts];
};

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
