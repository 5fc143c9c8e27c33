// Rows: targets that are filled vector by vector from runs whose items are Step apart, or any stride apart (Step 0).
//
// One thread's job: read |Step| whole vectors of a run (Step 0: gather one), take every |Step|-th item of them in
// registers, in reverse order if Step is negative, and name the place of the one vector that they become. The executor
// decides which vectors a thread takes (cuda_walk.cuh, host_runs.h).
// Limits: any step is correct for Width < 16; |Step| > 1 needs registers for |Step| vectors.
// Launch shape: one block per tile.
#pragma once

#include "executor.h"
#include "geometry.cuh"
#include "permute.cuh"
#include "sources.cuh"

namespace gpuslice {
inline namespace GPUSLICE_SET {

template <class Index, int Width, int Step>
struct Rows : OneSource<(Step < 0 ? -Step : Step)> {
  using Stride = typename Signed<Index>::type;
  static constexpr int kWidth = Width;        // bytes of an item in the target
  static constexpr int kSourceWidth = Width;  // and in the source
  static constexpr int kItems = kVectorBytes / Width;
  static constexpr int kRead = Step < 0 ? -Step : Step;  // vectors read at a time; 0: items are gathered
  static constexpr int kWritten = 1;                     // vectors written at a time
  static constexpr int kStride = Step * Width;           // bytes between the items of a run; 0: the header says
  static constexpr bool kDense = kRead == 1;             // no bytes between the items of a run
  static constexpr bool kReadsBetween = kRead > 1;       // but bytes up to the next item, where there are any, are read
  static constexpr bool kOneTarget = true;

  struct Registers {
    Vector128 vector[kWritten];
  };

  // The lowest byte that is read for the items from `source` on. Going backward it lies before the first item.
  static GPUSLICE_INLINE const char* first(const char* source) {
    return Step >= 0 ? source : source + Width - kRead * kVectorBytes;
  }

  // The items in kRead vectors that were read from first(source) on. With |Step| > 1 these have up to
  // (|Step| - 1) * Width bytes after the last item (before it, if Step is negative), which must be readable.
  template <int Read>
  GPUSLICE_INLINE Registers taken(const Vector128 (&read)[Read]) const {
    Registers registers;
    permute<Take<Width, Step>>(read, registers.vector);
    return registers;
  }

  // The items that lie `stride` bytes apart, for kRead of 0.
  static GPUSLICE_INLINE Registers gathered(const char* source, long long stride) {
    return {{gather<Width>(source, stride)}};
  }

  // Where vector i of the registers goes, if the first item goes to `target`.
  GPUSLICE_INLINE char* place(char* target, int) const { return target; }

  GPUSLICE_INLINE void item(char* target, const char* source) const { copy_item<Width>(target, source); }
};

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
