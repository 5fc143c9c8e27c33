// Rows: targets filled a vector at a time from runs whose items are Step apart (1, -1, 2, ...), or any stride (Step 0).
//
// Reads whole vectors of a run, turns or thins them in registers, and writes whole vectors. Who walks over the items of
// a tile, in which order and how many at once, is the executor's business; a body says how one vector or one item
// moves.
#pragma once

#include "geometry.cuh"
#include "permute.cuh"

namespace gpuslice {

template <class Executor, class Index, int Width, int Step>
struct Rows {
  using Vector = typename Executor::Vector;
  using Stride = typename Signed<Index>::type;
  static constexpr int kWidth = Width;        // bytes of an item in the target
  static constexpr int kSourceWidth = Width;  // and in the source
  static constexpr int kItems = kVectorBytes / Width;
  static constexpr int kVectors = Step < 0 ? -Step : Step;  // read for one that is written
  static constexpr int kStride = Step * Width;              // bytes between the items of a run; 0: the header says
  static constexpr bool kOneTarget = true;
  static constexpr bool kOneVector = true;       // written at a time
  static constexpr bool kDense = kVectors == 1;  // no bytes between the items of a run

  struct Registers {
    Vector vector;
  };

  // The lowest byte of the vectors read for the items from `source` on; going backward it lies before the first item.
  static GPUSLICE_INLINE const char* first(const char* source) {
    return Step >= 0 ? source : source + Width - kVectors * kVectorBytes;
  }

  GPUSLICE_INLINE Registers load(const char* source, Stride stride) const {
    if constexpr (Step == 0) {
      return {Executor::template gather<Width>(source, stride)};
    } else {
      Vector read[kVectors], taken[1];
      for (int i = 0; i < kVectors; ++i) read[i] = Executor::load(first(source) + i * kVectorBytes);
      Executor::template permute<Take<Width, Step>>(read, taken);
      return {taken[0]};
    }
  }

  template <bool Stream>
  GPUSLICE_INLINE void store(char* target, const Registers& registers) const {
    Executor::template store<Stream>(target, registers.vector);
  }

  GPUSLICE_INLINE bool storable(const char* target) const { return Executor::storable(target); }

  GPUSLICE_INLINE void item(char* target, const char* source) const { Executor::template item<Width>(target, source); }
};

}  // namespace gpuslice
