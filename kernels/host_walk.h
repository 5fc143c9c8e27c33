// How one host thread moves a tile: run by run, a cache line at a time.
#pragma once

#include "host.h"

namespace gpuslice {

// What is not the inner loop is kept out of line, or it would be compiled many times a kernel.
#define GPUSLICE_OUTLINE __attribute__((noinline))

template <class Body, class Index>
class HostWalk {
  using Stride = typename Signed<Index>::type;

 public:
  GPUSLICE_INLINE HostWalk(const Body& body, const Header<Index>& header, const Tile<Index>& tile)
      : body_(body),
        header_(header),
        tile_(tile),
        last_(static_cast<int>(header.rank) - 1),
        stride_(header.source_stride[last_]),
        length_(axis(header, tile, last_).value),
        ahead_(prefetch_distance()),
        ahead_at_end_(prefetch_distance_at_end()) {}

  // Only the first item of a tile needs divisions; from run to run coordinates go up like an odometer.
  void move() {
    const Place<Index> place = place_of<Host, Index, Body::kWidth>(header_, tile_, tile_.begin);
    Index left = tile_.end - tile_.begin;
    const Index first = place.room < left ? place.room : left;
    edge_from_ = offset(place.target);
    run(place.source, place.target, first, place.room);
    left -= first;
    if (!left) return header_.flat ? finish(place.target + first * Body::kWidth) : void();
    source_ = place.source - static_cast<Stride>(place.done) * stride_;
    target_ = place.target - place.done * Body::kWidth;
    start();
    const Stride pitch = header_.source_stride[last_ - 1];
    const Stride target_pitch =
        header_.flat ? static_cast<Stride>(length_) * Body::kWidth : header_.target_stride[last_ - 1];
    for (;;) {
      const Index whole = left / length_, rows = whole < rows_ ? whole : rows_;
      if (!is_whole(target_ + target_pitch, target_pitch))
        for (Index row = 0; row < rows; ++row) run(source_ += pitch, target_ += target_pitch, length_, length_);
      else if (header_.stream)
        move_rows<true>(rows, pitch, target_pitch);
      else
        move_rows<false>(rows, pitch, target_pitch);
      left -= rows * length_;
      rows_ -= rows;
      if (rows_ || !left) break;
      next(pitch, target_pitch);
    }
    if (left) run(source_ += pitch, target_ += target_pitch, left, length_);
    if (header_.flat) finish(target_ + (left ? left : length_) * Body::kWidth);
  }

 private:
  // Vectors of a body that read a cache line.
  static constexpr int kLine = Body::kVectors == 0 || Body::kVectors > 2 ? 1 : 4 / Body::kVectors;
  static constexpr bool kBackward = Body::kStride < 0;
  static constexpr long long kAhead = 2048;  // bytes to fetch ahead of use
  static constexpr Index kAtEnd = Body::kVectors ? kAhead / (Body::kVectors * kVectorBytes) : 0;  // vectors in so many

  GPUSLICE_INLINE bool staged() const { return Body::kOneTarget && header_.stream; }

  static GPUSLICE_INLINE unsigned offset(const char* target) {
    return reinterpret_cast<uintptr_t>(target) % kVectorBytes;
  }

  // Short runs defeat the hardware's prefetcher, and long ones do not use it up.
  GPUSLICE_INLINE Stride prefetch_distance() const {
    // The parts of a launch read the same rows; who comes first fetches those of the next tile.
    if (header_.order == kByTile) return static_cast<Stride>(header_.tile) * header_.source_stride[0];
    const Stride apart = stride_ < 0 ? -stride_ : stride_ > 0 ? stride_ : Body::kWidth;  // 0 where an item is repeated
    const Stride bytes = static_cast<Stride>(length_) * (Body::kStride ? Body::kWidth : apart);
    if (last_ == 0 || bytes >= kAhead) return Body::kStride || stride_ > 0 ? kAhead : -kAhead;
    return header_.source_stride[last_ - 1] * ((kAhead + bytes - 1) / bytes);
  }

  // In the last bytes of a long run: what is fetched is the beginning of the next.
  GPUSLICE_INLINE Stride prefetch_distance_at_end() const {
    const Stride bytes = static_cast<Stride>(length_) * (kBackward ? -Body::kStride : Body::kStride);
    if (!Body::kStride || last_ == 0 || header_.order == kByTile || bytes < kAhead) return ahead_;
    return kAhead + header_.source_stride[last_ - 1] - bytes;
  }

  // Whether runs from `target` on, so far apart, are whole vectors where they can be stored.
  GPUSLICE_INLINE bool is_whole(const char* target, Stride target_pitch) const {
    if (!Body::kDense || length_ % Body::kItems) return false;
    return !header_.stream || (offset(target) == 0 && target_pitch % kVectorBytes == 0);
  }

  // Coordinates of the run that the tile begins in, from axis `last_ - 1` on outward.
  GPUSLICE_OUTLINE void start() {
    Index rest = tile_.begin / length_;
    for (int k = last_ - 1; k >= 0; --k) {
      extent_[k] = axis(header_, tile_, k).value;
      at_[k] = k ? rest % extent_[k] : rest;
      rest /= extent_[k];
    }
    rows_ = extent_[last_ - 1] - at_[last_ - 1] - 1;
  }

  // Go to before the first run of the next entry of axis `last_ - 2`.
  GPUSLICE_OUTLINE void next(Stride pitch, Stride target_pitch) {
    rows_ = extent_[last_ - 1];
    source_ -= static_cast<Stride>(rows_) * pitch;
    if (!header_.flat) target_ -= static_cast<Stride>(rows_) * target_pitch;
    for (int k = last_ - 2;; --k) {
      source_ += header_.source_stride[k];
      if (!header_.flat) target_ += header_.target_stride[k];
      if (++at_[k] < extent_[k] || k == 0) return;
      at_[k] = 0;
      source_ -= static_cast<Stride>(extent_[k]) * header_.source_stride[k];
      if (!header_.flat) target_ -= static_cast<Stride>(extent_[k]) * header_.target_stride[k];
    }
  }

  // Move `count` items of a run, which has `room` of them from here on.
  GPUSLICE_OUTLINE void run(const char* source, char* target, Index count, Index room) {
    if (staged() && !header_.flat) edge_from_ = offset(target);
    for (; header_.stream && count && offset(target); --count, --room)
      staged() ? stage(source, target) : item(source, target);
    Index vectors = count / Body::kItems;
    if constexpr (!Body::kDense && Body::kVectors > 0) {
      // The bytes after the last item of a run are not read, so the last vector may have to go item by item.
      const Index readable = (room - 1) / Body::kItems;
      if (vectors > readable) vectors = readable;
    }
    const Index rest = count - vectors * Body::kItems;
    if (header_.stream)
      move_vectors<true>(source, target, vectors);
    else
      move_vectors<false>(source, target, vectors);
    source += static_cast<Stride>(vectors * Body::kItems) * stride_;
    target += vectors * Body::kItems * Body::kWidth;
    if (rest) move_rest(source, target, rest, vectors);
    if (staged() && !header_.flat) finish(target + rest * Body::kWidth);
  }

  template <bool Stream>
  GPUSLICE_INLINE void move_rows(Index rows, Stride pitch, Stride target_pitch) {
    const Index vectors = length_ / Body::kItems;
    for (; rows; --rows) move_vectors<Stream>(source_ += pitch, target_ += target_pitch, vectors);
  }

  // Runs that go backward are moved from their end, so that all reading goes up, as the hardware expects.
  template <bool Stream>
  GPUSLICE_INLINE void move_vectors(const char* source, char* target, Index vectors) const {
    // Of its own, since what is stored through a pointer to char might change any member.
    const Body body = body_;
    const Stride stride = stride_, ahead = ahead_, ahead_at_end = ahead_at_end_;
    const Stride step = static_cast<Stride>(Body::kItems) * stride;
    constexpr Stride kTargetStep = Body::kItems * Body::kWidth;
    if constexpr (kBackward) {
      source += static_cast<Stride>(vectors - 1) * step;
      target += static_cast<Stride>(vectors - 1) * kTargetStep;
    }
    const auto move = [&]() __attribute__((always_inline)) {
      body.template store<Stream>(target, body.load(source, stride));
      source += kBackward ? -step : step;
      target += kBackward ? -kTargetStep : kTargetStep;
    };
    for (; vectors >= kLine; vectors -= kLine) {
      if (ahead) prefetch(source, stride, vectors > kAtEnd ? ahead : ahead_at_end);
#pragma GCC unroll 4
      for (int i = 0; i < kLine; ++i) move();
    }
    if constexpr (kLine > 1) {
      if (ahead && vectors) prefetch(source, stride, ahead);
      for (; vectors; --vectors) move();
    }
  }

  // The lines that a vector comes from, one where its items are close together.
  static GPUSLICE_INLINE void prefetch(const char* source, Stride stride, Stride ahead) {
    Host::prefetch(source, ahead);
    if constexpr (Body::kVectors == 0) {
      const Stride apart = stride < 0 ? -stride : stride;
      const int every = apart >= Host::kLineBytes ? 1
                        : apart                   ? static_cast<int>(Host::kLineBytes / apart)
                                                  : Body::kItems;
      for (int i = every; i < Body::kItems; i += every) Host::prefetch(source, ahead + i * stride);
    }
  }

  // The items after the last whole vector: staged, or by a vector that overlaps the one before, or one by one.
  GPUSLICE_INLINE void move_rest(const char* source, char* target, Index rest, Index vectors) {
    if (staged()) {
      for (; rest; --rest) stage(source, target);
      return;
    }
    if (Body::kDense && vectors) {
      const Stride back = static_cast<Stride>(Body::kItems - rest);
      body_.template store<false>(target - back * Body::kWidth, body_.load(source - back * stride_, stride_));
      return;
    }
    for (; rest; --rest) item(source, target);
  }

  GPUSLICE_INLINE void item(const char*& source, char*& target) const {
    body_.item(target, source);
    source += stride_;
    target += Body::kWidth;
  }

  // An item that does not fill a vector waits for those after it, be they of the next run: a line written in part by
  // way of the caches and in part past them is written twice.
  GPUSLICE_OUTLINE void stage(const char*& source, char*& target) {
    const unsigned begin = offset(target), end = begin + Body::kWidth;
    char* vector = target - begin;
    char* staged = edge_ + begin;
    item(source, staged);
    target += Body::kWidth;
    if (end < kVectorBytes) return;
    if (edge_from_)
      memcpy(vector + edge_from_, edge_ + edge_from_, kVectorBytes - edge_from_);
    else
      Host::template store<true>(vector, Host::load(edge_));
    edge_from_ = 0;
    for (unsigned i = kVectorBytes; i < end; ++i) edge_[i - kVectorBytes] = edge_[i];  // pixels may lie across
  }

  // Write what waits before `target`, the end of the tile.
  GPUSLICE_OUTLINE void finish(char* target) {
    if (!staged()) return;
    const unsigned end = offset(target);
    if (end > edge_from_) memcpy(target - (end - edge_from_), edge_ + edge_from_, end - edge_from_);
  }

  const Body& body_;
  const Header<Index>& header_;
  const Tile<Index>& tile_;
  const int last_;
  const Stride stride_;
  const Index length_;
  const Stride ahead_;            // bytes from what is moved to what is fetched
  const Stride ahead_at_end_;     // and in the last kAhead bytes of a run
  const char* source_ = nullptr;  // where the current run begins
  char* target_ = nullptr;
  Index rows_ = 0;  // runs that are left along axis `last_ - 1`
  Index at_[kMaxRank] = {}, extent_[kMaxRank] = {};
  alignas(kVectorBytes) char edge_[2 * kVectorBytes];
  unsigned edge_from_ = 0;  // the first of its bytes that is this tile's
};

}  // namespace gpuslice
