// How one host thread moves its blocks, for the kernels whose bodies are Rows, Planes and Rearranged: tile by tile, run
// by run, a cache line at a time.
//
// Walk finds the runs: the same code for every kernel. HostWalk<Body> moves them: the inner loops, which are compiled
// once per kernel.
// Limits: none on addresses. With header.stream, what lies before the first aligned vector of a run goes item by item.
// Launch shape: a thread takes consecutive blocks; see run_kernel() in host_kernels.cpp.
#pragma once

#include "geometry.cuh"
#include "host_vector.h"

namespace gpuslice {
inline namespace GPUSLICE_SET {

using HostIndex = unsigned long long;
using HostStride = long long;

// The parameters of a launch as the host gets them: the header, and tables that are as long as there are parts.
struct Tables {
  const Header<HostIndex>& header;
  const unsigned long long* source;
  const unsigned long long* target;
  const Divisor<HostIndex>* extent;
  const HostIndex* first_tile;

  explicit Tables(const void* parameters) : header(*static_cast<const Header<HostIndex>*>(parameters)) {
    source = reinterpret_cast<const unsigned long long*>(&header + 1);
    target = source + header.capacity;
    extent = reinterpret_cast<const Divisor<HostIndex>*>(target + header.capacity);
    first_tile = reinterpret_cast<const HostIndex*>(extent + header.capacity);
  }
};

GPUSLICE_OUTLINE inline Tile<HostIndex> tile_of_block(const Tables& tables, HostIndex block) {
  return tile_of(tables.header, tables, block);
}

class Walk {
 public:
  // Moves the blocks [first, last) of a launch.
  void move_blocks(const Tables& tables, HostIndex first, HostIndex last);

 protected:
  // What Walk has to know of a body.
  struct Traits {
    int width;          // bytes of an item in the target
    HostStride stride;  // bytes between the items of a run; 0: the header says
    bool streams;       // whether it may store past the caches
  };

  Walk(const Header<HostIndex>& header, const Traits& traits);

  // Moves `runs` runs of `items` items each, pitch_ and target_pitch_ bytes apart. Each run of the source has `room`
  // items from the first of them on.
  virtual void move_runs(const char* source, char* target, HostIndex runs, HostIndex items, HostIndex room) = 0;

  // Write the bytes that wait in edge_ before `target`, the end of what was moved. Only streaming leaves any.
  GPUSLICE_OUTLINE void finish(char* target) {
    const unsigned end = offset(target);
    if (end > edge_from_) memcpy(target - (end - edge_from_), edge_ + edge_from_, end - edge_from_);
  }

  static GPUSLICE_INLINE unsigned offset(const char* target) {
    return reinterpret_cast<uintptr_t>(target) % kVectorBytes;
  }

  static constexpr HostStride kAhead = 1280;  // bytes to fetch ahead of use; more is lost if runs lie far apart

  const Header<HostIndex>& header_;
  const Traits traits_;
  const int last_;
  const bool stream_;
  const HostStride stride_;      // bytes between the items of a run
  const HostStride pitch_;       // bytes between runs of the source
  HostStride target_pitch_ = 0;  // and of the target
  HostStride ahead_ = 0;         // bytes from what is moved to what is fetched
  HostStride ahead_at_end_ = 0;  // and in the last kAhead bytes of a run
  alignas(kVectorBytes) char edge_[2 * kVectorBytes];
  unsigned edge_from_ = 0;  // the first of its bytes that is this tile's

 private:
  void move(const Tile<HostIndex>& tile);
  void move_beside(const Tables& tables, HostIndex part, HostIndex end, HostIndex number);
  void set_length(HostIndex length);
  HostStride prefetch_distance() const;
  HostStride prefetch_distance_at_end() const;
  void start(const Tile<HostIndex>& tile);
  void next_entry();

  HostIndex length_ = 0;          // items of a run
  const char* source_ = nullptr;  // where the next run begins
  char* target_ = nullptr;
  HostIndex runs_ = 0;                                   // runs from it on along axis `last_ - 1`
  HostIndex at_[kMaxRank] = {}, extent_[kMaxRank] = {};  // its coordinates
};

inline Walk::Walk(const Header<HostIndex>& header, const Traits& traits)
    : header_(header),
      traits_(traits),
      last_(static_cast<int>(header.rank) - 1),
      stream_(header.stream && traits.streams),
      stride_(header.source_stride[last_]),
      pitch_(last_ ? header.source_stride[last_ - 1] : 0) {
  set_length(header.shape[last_].value);
}

inline void Walk::move_blocks(const Tables& tables, HostIndex first, HostIndex last) {
  if (header_.order == kByPart) {
    for (HostIndex block = first; block < last; ++block) move(tile_of_block(tables, block));
    return;
  }
  while (first < last) {
    const HostIndex number = first / header_.parts, part = first % header_.parts, left = last - first;
    const HostIndex end = header_.parts - part < left ? header_.parts : part + left;
    move_beside(tables, part, end, number);
    first += end - part;
  }
}

// Only the first item of a tile needs divisions; from run to run the coordinates go up like an odometer.
GPUSLICE_OUTLINE inline void Walk::move(const Tile<HostIndex>& tile) {
  if (header_.varying == static_cast<unsigned>(last_)) set_length(tile.extent.value);
  const Place<HostIndex> place = place_of(header_, tile, tile.begin, traits_.width);
  HostIndex left = tile.end - tile.begin;
  const HostIndex first = place.room < left ? place.room : left;
  edge_from_ = offset(place.target);
  move_runs(place.source, place.target, 1, first, place.room);
  char* end = place.target + first * traits_.width;
  left -= first;
  if (left) {
    source_ = place.source - static_cast<HostStride>(place.done) * stride_ + pitch_;
    target_ = place.target - place.done * traits_.width + target_pitch_;
    start(tile);
  }
  while (left) {
    if (!runs_) next_entry();
    HostIndex items = length_, runs = left / length_;
    if (!runs) items = left, runs = 1;
    if (runs > runs_) runs = runs_;
    move_runs(source_, target_, runs, items, length_);
    end = target_ + static_cast<HostStride>(runs - 1) * target_pitch_ + items * traits_.width;
    source_ += static_cast<HostStride>(runs) * pitch_;
    target_ += static_cast<HostStride>(runs) * target_pitch_;
    left -= runs * items;
    runs_ -= runs;
  }
  if (stream_ && header_.flat) finish(end);
}

// Moves tile `number` of the parts [part, end), which read the same rows. The tiles are short, so as little as possible
// is done for each.
inline void Walk::move_beside(const Tables& tables, HostIndex part, HostIndex end, HostIndex number) {
  if (header_.rank != 2) {
    for (; part < end; ++part) move(tile_at(header_, tables, part, number));
    return;
  }
  const HostIndex first = number * header_.tile, left = header_.shape[0].value - first;
  const HostIndex runs = left < header_.tile ? left : header_.tile;
  for (; part < end; ++part) {
    if (header_.varying == 1) {
      length_ = tables.extent[part].value;
      if (header_.flat) target_pitch_ = static_cast<HostStride>(length_) * traits_.width;
    }
    const char* source = reinterpret_cast<const char*>(tables.source[part]) + static_cast<HostStride>(first) * pitch_;
    char* target = reinterpret_cast<char*>(tables.target[part]) + static_cast<HostStride>(first) * target_pitch_;
    edge_from_ = offset(target);
    move_runs(source, target, runs, length_, length_);
    if (stream_ && header_.flat) finish(target + static_cast<HostStride>(runs) * target_pitch_);
  }
}

inline void Walk::set_length(HostIndex length) {
  length_ = length;
  target_pitch_ = header_.flat ? static_cast<HostStride>(length) * traits_.width
                  : last_      ? header_.target_stride[last_ - 1]
                               : 0;
  ahead_ = prefetch_distance();
  ahead_at_end_ = prefetch_distance_at_end();
}

// Short runs defeat the hardware's prefetcher, and long ones do not use it up.
inline HostStride Walk::prefetch_distance() const {
  // The parts of a launch read the same rows; the first of them fetches those of the next tile.
  if (header_.order == kByTile) return static_cast<HostStride>(header_.tile) * header_.source_stride[0];
  const HostStride apart = stride_ < 0 ? -stride_ : stride_ > 0 ? stride_ : traits_.width;  // 0 if an item is repeated
  const HostStride bytes = static_cast<HostStride>(length_) * (traits_.stride ? traits_.width : apart);
  if (last_ == 0 || bytes >= kAhead) return traits_.stride || stride_ > 0 ? kAhead : -kAhead;
  return pitch_ * ((kAhead + bytes - 1) / bytes);
}

// In the last bytes of a long run, what is fetched is the beginning of the next.
inline HostStride Walk::prefetch_distance_at_end() const {
  const HostStride bytes = static_cast<HostStride>(length_) * (traits_.stride < 0 ? -traits_.stride : traits_.stride);
  if (!traits_.stride || last_ == 0 || header_.order == kByTile || bytes < kAhead) return ahead_;
  return kAhead + pitch_ - bytes;
}

// Set the coordinates to the run after the one that the tile begins in.
inline void Walk::start(const Tile<HostIndex>& tile) {
  HostIndex rest = tile.begin / length_;
  for (int k = last_ - 1; k >= 0; --k) {
    extent_[k] = axis(header_, tile, k).value;
    at_[k] = k ? rest % extent_[k] : rest;
    rest /= extent_[k];
  }
  runs_ = extent_[last_ - 1] - at_[last_ - 1] - 1;
}

// Go from behind the last run of an entry of axis `last_ - 2` to the first run of the next entry.
inline void Walk::next_entry() {
  runs_ = extent_[last_ - 1];
  source_ -= static_cast<HostStride>(runs_) * pitch_;
  if (!header_.flat) target_ -= static_cast<HostStride>(runs_) * target_pitch_;
  for (int k = last_ - 2;; --k) {
    source_ += header_.source_stride[k];
    if (!header_.flat) target_ += header_.target_stride[k];
    if (++at_[k] < extent_[k] || k == 0) return;
    at_[k] = 0;
    source_ -= static_cast<HostStride>(extent_[k]) * header_.source_stride[k];
    if (!header_.flat) target_ -= static_cast<HostStride>(extent_[k]) * header_.target_stride[k];
  }
}

template <class Body>
class HostWalk final : public Walk {
 public:
  // Planes write to several places in turns, which goes slower past the caches.
  HostWalk(const Body& body, const Header<HostIndex>& header)
      : Walk(header, {Body::kWidth, Body::kStride, Body::kOneTarget}), body_(body) {}

 private:
  static constexpr bool kBackward = Body::kStride < 0;
  static constexpr HostStride kTargetStep = Body::kItems * Body::kWidth;
  // Vectors' worth of items that read a cache line, or if items are gathered, write one.
  static constexpr int kLine = Body::kRead == 0 ? 4 : Body::kRead > 2 ? 1 : 4 / Body::kRead;
  // And those in kAhead bytes.
  static constexpr HostIndex kAtEnd = Body::kRead ? kAhead / (Body::kRead * kVectorBytes) : 0;

  GPUSLICE_INLINE HostStride stride() const { return Body::kStride ? Body::kStride : stride_; }

  void move_runs(const char* source, char* target, HostIndex runs, HostIndex items, HostIndex room) override {
    if constexpr (Body::kOneTarget)
      if (stream_) return move_runs_as<true>(source, target, runs, items, room);
    move_runs_as<false>(source, target, runs, items, room);
  }

  template <bool Stream>
  GPUSLICE_INLINE void move_runs_as(const char* source, char* target, HostIndex runs, HostIndex items, HostIndex room) {
    // A copy, since what is stored through a pointer to char might change any member.
    const Body body = body_;
    const HostStride pitch = pitch_, target_pitch = target_pitch_;
    const bool flat = header_.flat;
    // Whether all runs are whole vectors that can be stored.
    const bool whole = Body::kDense && items % Body::kItems == 0 &&
                       (!Stream || (offset(target) == 0 && (runs == 1 || target_pitch % kVectorBytes == 0)));
    if constexpr (Body::kDense && Body::kWritten == 1)
      if (whole) {
        const HostIndex vectors = items / Body::kItems;
        if (vectors == 1) return move_short_runs<Stream, 1>(body, source, target, runs);
        if (vectors == 2) return move_short_runs<Stream, 2>(body, source, target, runs);
        if (vectors == 4) return move_short_runs<Stream, 4>(body, source, target, runs);
        if (vectors == 8) return move_short_runs<Stream, 8>(body, source, target, runs);
      }
    for (; runs; --runs, source += pitch, target += target_pitch) {
      const char* from = source;
      char* to = target;
      HostIndex vectors = items / Body::kItems, rest = 0;
      if (!whole) {
        HostIndex count = items, left = room;
        if constexpr (Stream) {
          if (!flat) edge_from_ = offset(to);
          for (; count && offset(to); --count, --left) stage(from, to);
        }
        vectors = count / Body::kItems;
        if constexpr (!Body::kDense && Body::kRead > 0) {
          // The bytes behind the last item of a run are not read, so the last vector may have to go item by item.
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

  template <bool Stream, int Vectors>
  GPUSLICE_INLINE void move_short_runs(const Body& body, const char* source, char* target, HostIndex runs) const {
    constexpr HostStride kStep = Body::kItems * Body::kStride;
    const HostStride ahead = ahead_, pitch = pitch_, target_pitch = target_pitch_;
    for (; runs; --runs, source += pitch, target += target_pitch) {
      for (int i = 0; i < Vectors; i += 4) prefetch(source + i * kStep, ahead);
      Vector128 vector[Vectors];
#pragma GCC unroll 8
      for (int i = 0; i < Vectors; ++i) vector[i] = body.load(source + i * kStep, Body::kStride).vector[0];
      store_from_any_vector<Stream>(target, vector);
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

  // Move Count vectors' worth of items, and go on to the next ones.
  template <bool Stream, int Count>
  GPUSLICE_INLINE void move_line(const Body& body, const char*& source, char*& target, HostStride step) const {
    if constexpr (Body::kWritten > 1) {
#pragma GCC unroll 4
      for (int i = 0; i < Count;
           ++i, source += kBackward ? -step : step, target += kBackward ? -kTargetStep : kTargetStep)
        store_apart<Stream>(body, target, body.load(source, stride()));
    } else {
      Vector128 vector[Count];
#pragma GCC unroll 4
      for (int i = 0; i < Count; ++i, source += kBackward ? -step : step)
        vector[kBackward ? Count - 1 - i : i] = body.load(source, stride()).vector[0];
      store<Stream>(kBackward ? target - (Count - 1) * kTargetStep : target, vector);
      target += Count * (kBackward ? -kTargetStep : kTargetStep);
    }
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
    prefetch(source, ahead);
    if constexpr (Body::kRead == 0) {
      const HostStride apart = stride_ < 0 ? -stride_ : stride_;
      const int every = apart >= kLineBytes ? 1 : apart ? static_cast<int>(kLineBytes / apart) : Count * Body::kItems;
      for (int i = every; i < Count * Body::kItems; i += every) prefetch(source, ahead + i * stride_);
    }
  }

  // Move the items behind the last whole vector: by way of edge_, or by a vector that overlaps the one before, or one
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
      store_apart<false>(body, target - back * Body::kWidth, body.load(source - back * stride(), stride()));
      return;
    }
    for (; rest; --rest, source += stride(), target += Body::kWidth) body.item(target, source);
  }

  // Move an item by way of edge_: what does not fill a vector waits there for the items behind it, even those of the
  // next run. A line that is written in part through the caches and in part past them is written twice.
  GPUSLICE_OUTLINE void stage(const char*& source, char*& target) {
    const unsigned begin = offset(target), end = begin + Body::kWidth;
    char* vector = target - begin;
    body_.item(edge_ + begin, source);
    source += stride();
    target += Body::kWidth;
    if (end < kVectorBytes) return;
    if (edge_from_)
      memcpy(vector + edge_from_, edge_ + edge_from_, kVectorBytes - edge_from_);
    else
      store128cs(vector, load128(edge_));
    edge_from_ = 0;
    for (unsigned i = kVectorBytes; i < end; ++i) edge_[i - kVectorBytes] = edge_[i];  // pixels may lie across
  }

  const Body body_;
};

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
