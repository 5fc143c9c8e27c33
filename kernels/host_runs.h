// How one host thread moves runs, a cache line at a time: the inner loops, which are compiled once per kernel.
//
// One thread's job: the runs that Walk found. A run that goes backward is moved from its end.
// Limits: any address. With streaming stores, what lies before the first aligned vector of a run goes item by
// item.
#pragma once

#include <numeric>

#include "geometry.cuh"
#include "host_lines.h"
#include "host_vector.h"
#include "host_walk.h"

namespace gpuslice {
inline namespace GPUSLICE_SET {

template <class Body>
class HostWalk final : public Walk {
 public:
  // Planes, which write to several places in turns, go past the caches by whole lines only: see host_lines.h.
  HostWalk(const Body& body, const Header<HostIndex>& header, bool past_caches)
      : Walk(header, {Body::kWidth, Body::kStride, Body::kOneTarget}, past_caches), body_(body) {}

 private:
  static constexpr bool kBackward = Body::kStride < 0;
  static constexpr HostStride kTargetStep = Body::kItems * Body::kWidth;
  // Vectors' worth of items that are moved at once: they read a cache line, or if items are gathered, write one. Two of
  // pixels with three channels or more, so that fewer lines are written in two turns.
  static constexpr int kLine = Body::kRead == 0     ? (Body::kWritten > 1 ? 1 : 4)
                               : Body::kSources > 1 ? 4
                               : Body::kRead > 2    ? (Body::kOneTarget && Body::kWritten > 2 ? 2 : 1)
                                                    : 4 / Body::kRead;
  // Shorter runs of several targets have too few whole lines.
  static constexpr HostIndex kFewest = 4 * kLineBytes / Body::kWidth;
  // The vectors' worth of items in kAhead bytes.
  static constexpr HostIndex kAtEnd = Body::kRead ? kAhead * Body::kSources / (Body::kRead * kVectorBytes) : 0;
  // Runs of so many vectors are moved by whole lines of the target.
  static constexpr HostIndex kLongRun = 32;

  // What the addresses of streaming stores are to be a multiple of: a vector, or of pixels whose vectors are stored
  // together a cache line, if a pixel begins there.
  static GPUSLICE_INLINE unsigned alignment(const char* target) {
    constexpr unsigned kPixels = std::gcd(Body::kWidth, kLineBytes);
    return Body::kWritten > 1 && reinterpret_cast<uintptr_t>(target) % kPixels == 0 ? kLineBytes : kVectorBytes;
  }

  GPUSLICE_INLINE HostStride stride() const { return Body::kStride ? Body::kStride : stride_; }

  void move_runs(const char* source, char* target, HostIndex runs, HostIndex items, HostIndex room) override {
    if constexpr (Body::kOneTarget)
      if (stream_) return move_runs_as<true>(source, target, runs, items, room);
    if constexpr (!Body::kOneTarget && kStoresPastCaches)
      if (past_caches_ && items >= kFewest) return move_lines_apart(source, target, runs, items);
    move_runs_as<false>(source, target, runs, items, room);
  }

  template <bool Stream>
  GPUSLICE_INLINE void move_runs_as(const char* source, char* target, HostIndex runs, HostIndex items, HostIndex room) {
    // A copy, since what is stored through a pointer to char might change any member.
    const Body body = body_;
    const HostStride pitch = pitch_, target_pitch = target_pitch_;
    const bool flat = header_.flat;
    // Whether all runs are whole vectors that can be stored.
    const unsigned aligned = Stream ? alignment(target) : 1;
    const bool whole = Body::kDense && items % Body::kItems == 0 &&
                       reinterpret_cast<uintptr_t>(target) % aligned == 0 &&
                       (!Stream || runs == 1 || target_pitch % aligned == 0);
    if constexpr (Body::kDense && Body::kWritten == 1)
      if (whole) {
        const HostIndex vectors = items / Body::kItems;
        if (vectors == 1 && flat) return move_vector_runs<Stream>(body, source, target, runs);
        if (vectors == 1) return move_short_runs<Stream, 1>(body, source, target, runs);
        if (vectors == 2) return move_short_runs<Stream, 2>(body, source, target, runs);
        if (vectors == 4) return move_short_runs<Stream, 4>(body, source, target, runs);
        if (vectors == 8) return move_short_runs<Stream, 8>(body, source, target, runs);
      }
    if constexpr (Body::kStride == Body::kWidth && Body::kWritten == 1 && !Stream)
      if (items < Body::kItems) return move_tiny_runs(source, target, runs, items * Body::kWidth);
    for (; runs; --runs, source += pitch, target += target_pitch) {
      const char* from = source;
      char* to = target;
      HostIndex vectors = items / Body::kItems, rest = 0;
      if (!whole) {
        HostIndex count = items, left = room;
        if constexpr (Stream) {
          if (!flat) edge_from_ = offset(to);
          for (; count && reinterpret_cast<uintptr_t>(to) % aligned; --count, --left) stage(from, to);
        }
        vectors = count / Body::kItems;
        if constexpr (Body::kReadsBetween) {
          // The bytes after the last item of a run are not read, so the last vector may have to go item by item.
          const HostIndex readable = (left - 1) / Body::kItems;
          if (vectors > readable) vectors = readable;
        }
        rest = count - vectors * Body::kItems;
      }
      if constexpr (Body::kWritten == 1)
        move_vectors<Stream>(body, from, to, vectors);
      else
        move_many<Stream>(from, to, vectors);
      if (whole) continue;
      from += static_cast<HostStride>(vectors * Body::kItems) * stride();
      to += vectors * kTargetStep;
      if (rest) move_rest<Stream>(body, from, to, rest, vectors);
      if (Stream && !flat) finish(to + rest * Body::kWidth);
    }
  }

  // Move runs of several targets past the caches.
  GPUSLICE_OUTLINE void move_lines_apart(const char* source, char* target, HostIndex runs, HostIndex items) {
    TargetLines<Body> lines;
    const Body body = body_;
    const HostStride ahead = kBackward && ahead_ == kAhead ? -kAhead : ahead_, pitch = pitch_;
    const bool flat = header_.flat;
    bool began = false;
    for (; runs; --runs, source += pitch, target += target_pitch_) {
      if (!began) lines.begin(body, target);
      const char* from = source;
      for (HostIndex left = items; left;) {
        const int pixels = left < lines.kPixels ? static_cast<int>(left) : lines.kPixels;
        lines.move(body, from, pixels, ahead);
        from += pixels * stride();
        left -= pixels;
      }
      began = flat && runs > 1;  // the next run goes on where this one ends
      if (!began) lines.finish();
    }
  }

  // Move runs of one vector that are neighbours in the target.
  template <bool Stream>
  GPUSLICE_INLINE void move_vector_runs(const Body& body, const char* source, char* target, HostIndex runs) const {
    const HostStride ahead = ahead_, pitch = pitch_;
    for (; runs >= 4; runs -= 4, source += 4 * pitch, target += 4 * kVectorBytes) {
      Vector128 vector[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        prefetch(source + i * pitch, ahead);
        vector[i] = load(body, source + i * pitch, Body::kStride).vector[0];
      }
      store<Stream>(target, vector);
    }
    move_short_runs<Stream, 1>(body, source, target, runs);
  }

  // Move runs of less than a vector, each by its first and its last bytes, which may overlap.
  GPUSLICE_INLINE void move_tiny_runs(const char* source, char* target, HostIndex runs, HostIndex bytes) const {
    if (bytes == Body::kWidth) return move_ends<Body::kWidth>(source, target, runs, bytes);
    if constexpr (Body::kWidth < 8) {
      if (bytes < 4) return move_ends<2>(source, target, runs, bytes);
      if (bytes < 8) return move_ends<4>(source, target, runs, bytes);
      move_ends<8>(source, target, runs, bytes);
    }
  }

  template <int Bytes>
  GPUSLICE_INLINE void move_ends(const char* source, char* target, HostIndex runs, HostIndex bytes) const {
    const HostStride ahead = ahead_, pitch = pitch_, target_pitch = target_pitch_;
    const HostIndex last = bytes - Bytes;
    if (last == 0) {
#pragma GCC unroll 4
      for (; runs; --runs, source += pitch, target += target_pitch) copy_item<Bytes>(target, source);
      return;
    }
    for (; runs; --runs, source += pitch, target += target_pitch) {
      prefetch(source, ahead);
      copy_item<Bytes>(target, source);
      copy_item<Bytes>(target + last, source + last);
    }
  }

  template <bool Stream, int Vectors>
  GPUSLICE_INLINE void move_short_runs(const Body& body, const char* source, char* target, HostIndex runs) const {
    constexpr HostStride kStep = Body::kItems * Body::kStride;
    const HostStride ahead = ahead_, pitch = pitch_, target_pitch = target_pitch_;
    for (; runs; --runs, source += pitch, target += target_pitch) {
      for (int i = 0; i < Vectors; i += 4) prefetch(source + i * kStep, ahead);
      Vector128 vector[Vectors];
#pragma GCC unroll 8
      for (int i = 0; i < Vectors; ++i) vector[i] = load(body, source + i * kStep, Body::kStride).vector[0];
      store<Stream>(target, vector);
    }
  }

  // Of its own, so that the many masks of a permutation of several vectors stay in registers.
  template <bool Stream>
  GPUSLICE_OUTLINE void move_many(const char* source, char* target, HostIndex vectors) const {
    const Body body = body_;
    move_vectors<Stream>(body, source, target, vectors);
  }

  // Runs that go backward are moved from their end, so that all reading goes up, as the hardware expects.
  template <bool Stream>
  GPUSLICE_INLINE void move_vectors(const Body& body, const char* source, char* target, HostIndex vectors) const {
    const HostStride step = static_cast<HostStride>(Body::kItems) * stride();
    const HostStride ahead = ahead_, ahead_at_end = ahead_at_end_;
    if constexpr (kBackward) {
      source += static_cast<HostStride>(vectors - 1) * step;
      target += static_cast<HostStride>(vectors - 1) * kTargetStep;
    }
    if constexpr (Stream && Body::kWritten == 1 && kLine > 1) {
      const char* edge = kBackward ? target + kTargetStep : target;
      if (vectors && reinterpret_cast<uintptr_t>(edge) % kStreamBytes) {
        if (ahead) prefetch_vectors<1>(source, ahead);
        move_line<Stream, 1>(body, source, target, step);
        --vectors;
      }
    }
    if constexpr (Stream && Body::kDense && Body::kWritten == 1) move_pages(body, source, target, vectors, step);
    if constexpr (!Stream && Body::kWritten == 1)
      if (vectors >= kLongRun) return move_long_run(source, target, vectors, step);
    move_lines<Stream>(body, source, target, vectors, step, ahead, ahead_at_end);
  }

  template <bool Stream>
  GPUSLICE_INLINE void move_lines(const Body& body, const char* source, char* target, HostIndex vectors,
                                  HostStride step, HostStride ahead, HostStride ahead_at_end) const {
    for (; vectors >= kLine; vectors -= kLine) {
      if (ahead) prefetch_vectors<kLine>(source, vectors > kAtEnd ? ahead : ahead_at_end);
      move_line<Stream, kLine>(body, source, target, step);
    }
    if constexpr (kLine > 1) {
      if (ahead && vectors) prefetch_vectors<kLine - 1>(source, ahead);
      if constexpr (kLine > 2)
        if (vectors >= 2) {
          move_line<Stream, 2>(body, source, target, step);
          vectors -= 2;
        }
      if (vectors) move_line<Stream, 1>(body, source, target, step);
    }
  }

  // Move a run through the caches by whole lines of the target, and what lies before the first and after the last line
  // by vectors that overlap these. Stores to a line take half as long if no other store comes between them. So this is
  // a function of its own, with registers for all that its loop counts.
  GPUSLICE_OUTLINE void move_long_run(const char* source, char* target, HostIndex vectors, HostStride step) const {
    const Body body = body_;
    const HostStride read = kBackward ? -step : step, write = kBackward ? -kTargetStep : kTargetStep;
    const char* last_source = source + static_cast<HostStride>(vectors - 1) * read;
    char* last_target = target + static_cast<HostStride>(vectors - 1) * write;
    const auto edge = reinterpret_cast<uintptr_t>(kBackward ? target + kTargetStep : target);
    const HostIndex items = (kBackward ? edge : -edge) % kLineBytes / Body::kWidth;
    const char* from = source;
    char* to = target;
    for (HostIndex moved = 0; moved < items; moved += Body::kItems) move_line<false, 1>(body, from, to, step);
    source += static_cast<HostStride>(items) * (read / Body::kItems);
    target += static_cast<HostStride>(items) * (write / Body::kItems);
    move_lines<false>(body, source, target, (vectors * Body::kItems - items) / Body::kItems, step, ahead_,
                      ahead_at_end_);
    move_line<false, 1>(body, last_source, last_target, step);
  }

  // Move whole pages, a line of each of four in turns: reading several pages at a time is faster if they come from
  // memory.
  GPUSLICE_INLINE void move_pages(const Body& body, const char*& source, char*& target, HostIndex& vectors,
                                  HostStride step) const {
    constexpr int kPages = 4, kVectors = kPageBytes / kVectorBytes;
    const HostStride read = kBackward ? -step : step, write = kBackward ? -kTargetStep : kTargetStep;
    if (vectors < kPages * kVectors) return;
    for (const int begin = kBackward ? kVectorBytes : 0; reinterpret_cast<uintptr_t>(target + begin) % kLineBytes;
         --vectors)
      move_line<true, 1>(body, source, target, step);
    for (; vectors >= kPages * kVectors; vectors -= kPages * kVectors) {
      for (int i = 0; i < kVectors; i += kLine)
        for (int page = 0; page < kPages; ++page) {
          const char* from = source + (page * kVectors + i) * read;
          char* to = target + (page * kVectors + i) * write;
          move_line<true, kLine>(body, from, to, step);
        }
      source += kPages * kVectors * read;
      target += kPages * kVectors * write;
    }
  }

  // Move Count vectors' worth of items, and go on to the next ones.
  template <bool Stream, int Count>
  GPUSLICE_INLINE void move_line(const Body& body, const char*& source, char*& target, HostStride step) const {
    // Past the caches, two times three vectors would end within a line.
    constexpr bool kInPairs = Count % 2 == 0 && (!Stream || Body::kSources > 1 || Body::kWritten == 2);
    if constexpr (Body::kWritten > 1 && Body::kOneTarget && kInPairs) {
#pragma GCC unroll 2
      for (int i = 0; i < Count; i += 2) move_pair<Stream>(body, source, target, step);
    } else if constexpr (Body::kWritten > 1) {
#pragma GCC unroll 4
      for (int i = 0; i < Count;
           ++i, source += kBackward ? -step : step, target += kBackward ? -kTargetStep : kTargetStep)
        store_apart<Stream>(body, target, load(body, source, stride()));
    } else {
      Vector128 vector[Count];
#pragma GCC unroll 4
      for (int i = 0; i < Count; ++i, source += kBackward ? -step : step)
        vector[kBackward ? Count - 1 - i : i] = load(body, source, stride()).vector[0];
      char* const first = kBackward ? target - (Count - 1) * kTargetStep : target;
      if constexpr (Stream)
        store_cs(first, vector);
      else
        store_in_order<kBackward>(first, vector);
      target += Count * (kBackward ? -kTargetStep : kTargetStep);
    }
  }

  // Move two times kItems pixels, whose vectors are stored two by two.
  template <bool Stream>
  GPUSLICE_INLINE void move_pair(const Body& body, const char*& source, char*& target, HostStride step) const {
    Vector128 vector[2 * Body::kWritten];
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i, source += kBackward ? -step : step) {
      const auto registers = load(body, source, stride());
#pragma GCC unroll 4
      for (int j = 0; j < Body::kWritten; ++j)
        vector[(kBackward ? 1 - i : i) * Body::kWritten + j] = registers.vector[j];
    }
    store<Stream, kBackward>(kBackward ? target - kTargetStep : target, vector);
    target += 2 * (kBackward ? -kTargetStep : kTargetStep);
  }

  template <bool Stream>
  static GPUSLICE_INLINE void store_apart(const Body& body, char* target, const typename Body::Registers& registers) {
#pragma GCC unroll 4
    for (int i = 0; i < Body::kWritten; ++i) {
      if constexpr (Stream)
        store128cs(body.place(target, i), registers.vector[i]);
      else
        store128(body.place(target, i), registers.vector[i]);
    }
  }

  // Fetch the lines that Count vectors' worth of items come from; one line if the items are close together.
  template <int Count>
  GPUSLICE_INLINE void prefetch_vectors(const char* source, HostStride ahead) const {
    if constexpr (Body::kSources > 1) return prefetch_each(source, ahead);
    prefetch(source, ahead);
    if constexpr (Count * Body::kRead > 4) prefetch(source, ahead + kLineBytes);
    if constexpr (Body::kRead == 0) {
      const HostStride apart = stride_ < 0 ? -stride_ : stride_;
      const int every = apart >= kLineBytes ? 1 : apart ? static_cast<int>(kLineBytes / apart) : Count * Body::kItems;
      for (int i = every; i < Count * Body::kItems; i += every) prefetch(source, ahead + i * stride_);
    }
  }

  // Fetch the lines that four vectors' worth of items come from, in every source.
  GPUSLICE_INLINE void prefetch_each(const char* source, HostStride ahead) const {
    for (int s = 0; s < Body::kSources; ++s)
      for (int i = 0; i < Body::vectors(s); ++i)
        prefetch(body_.source_at(Body::first(source) + ahead, s), i * kLineBytes);
  }

  // Move the items after the last whole vector: by way of edge_, or by a vector that overlaps the one before, or one
  // by one.
  template <bool Stream>
  GPUSLICE_INLINE void move_rest(const Body& body, const char* source, char* target, HostIndex rest,
                                 HostIndex vectors) {
    if constexpr (Stream) {
      for (; rest; --rest) stage(source, target);
      return;
    }
    if (Body::kDense && vectors) {
      const HostStride back = static_cast<HostStride>(Body::kItems - rest);
      store_apart<false>(body, target - back * Body::kWidth, load(body, source - back * stride(), stride()));
      return;
    }
    for (; rest; --rest, source += stride(), target += Body::kWidth) body.item(target, source);
  }

  // Move an item by way of edge_: what does not fill a vector waits there for the items after it, even those of the
  // next run. A line that is written in part through the caches and in part past them is written twice.
  GPUSLICE_OUTLINE void stage(const char*& source, char*& target) {
    const unsigned begin = offset(target), end = begin + Body::kWidth;
    char* vector = target - begin;
    body_.item(edge_ + begin, source);
    source += stride();
    target += Body::kWidth;
    unsigned done = 0;
    for (; end - done >= kVectorBytes; done += kVectorBytes) {
      if (edge_from_)
        memcpy(vector + edge_from_, edge_ + edge_from_, kVectorBytes - edge_from_);
      else
        store128cs(vector + done, load128(edge_ + done));
      edge_from_ = 0;
    }
    for (unsigned i = done; i < end; ++i) edge_[i - done] = edge_[i];  // pixels may lie across
  }

  const Body body_;
};

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
