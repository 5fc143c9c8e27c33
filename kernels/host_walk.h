// How one host thread moves a tile: run by run, a cache line at a time.
#pragma once

#include "host.h"

namespace gpuslice {

// Stream: stores go past the caches, whole vectors of the target at a time.
template <class Body, class Index, bool Stream>
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
        ahead_(prefetch_distance()) {}

  // Only the first item of a tile needs divisions; from run to run coordinates go up like an odometer.
  GPUSLICE_INLINE void move() {
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
      for (Index row = 0; row < rows; ++row) run(source_ += pitch, target_ += target_pitch, length_, length_);
      left -= rows * length_;
      rows_ -= rows;
      if (rows_ || !left) break;
      next(pitch, target_pitch);
    }
    if (left) run(source_ += pitch, target_ += target_pitch, left, length_);
    if (header_.flat) finish(target_ + (left ? left : length_) * Body::kWidth);
  }

 private:
  static constexpr bool kStaged = Stream && Body::kOneTarget;
  // Vectors of a body that read a cache line.
  static constexpr int kLine = Body::kVectors == 0 || Body::kVectors > 2 ? 1 : 4 / Body::kVectors;
  static constexpr long long kPrefetch = 8192;  // bytes to fetch ahead of use

  static GPUSLICE_INLINE unsigned offset(const char* target) {
    return reinterpret_cast<uintptr_t>(target) % kVectorBytes;
  }

  // Short runs, and long ones that go down, defeat the hardware's prefetcher.
  GPUSLICE_INLINE Stride prefetch_distance() const {
    // The parts of a launch read the same rows; who comes first fetches those of the next tile.
    if (header_.order == kByTile) return static_cast<Stride>(header_.tile) * header_.source_stride[0];
    const Stride bytes = static_cast<Stride>(length_) * Body::kWidth;
    if (last_ == 0 || bytes >= kPrefetch) return stride_ < 0 ? -kPrefetch / 8 : 0;
    return header_.source_stride[last_ - 1] * (kPrefetch / bytes + 1);
  }

  // Coordinates of the run that the tile begins in, from axis `last_ - 1` on outward.
  GPUSLICE_INLINE void start() {
    Index rest = tile_.begin / length_;
    for (int k = last_ - 1; k >= 0; --k) {
      extent_[k] = axis(header_, tile_, k).value;
      at_[k] = k ? rest % extent_[k] : rest;
      rest /= extent_[k];
    }
    rows_ = extent_[last_ - 1] - at_[last_ - 1] - 1;
  }

  // Go to before the first run of the next entry of axis `last_ - 2`.
  GPUSLICE_INLINE void next(Stride pitch, Stride target_pitch) {
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
  GPUSLICE_INLINE void run(const char* source, char* target, Index count, Index room) {
    if constexpr (kStaged) {
      if (!header_.flat) edge_from_ = offset(target);
      if (offset(target)) {
        const Index head = (kVectorBytes - offset(target)) / Body::kWidth;
        stage(source, target, head < count ? head : count);
        if (head >= count) return header_.flat ? void() : finish(target + count * Body::kWidth);
        source += static_cast<Stride>(head) * stride_;
        target += head * Body::kWidth;
        count -= head;
        room -= head;
      }
    } else if constexpr (Stream) {
      for (; count && offset(target); --count, --room) item(source, target);
    }
    Index vectors = count / Body::kItems;
    if constexpr (!Body::kDense && Body::kVectors > 0) {
      // The bytes after the last item of a run are not read, so the last vector may have to go item by item.
      const Index readable = (room - 1) / Body::kItems;
      if (vectors > readable) vectors = readable;
    }
    const Index rest = count - vectors * Body::kItems;
    move_vectors(source, target, vectors);
    source += static_cast<Stride>(vectors * Body::kItems) * stride_;
    target += vectors * Body::kItems * Body::kWidth;
    if (rest) move_rest(source, target, rest, vectors);
    if (kStaged && !header_.flat) finish(target + rest * Body::kWidth);
  }

  GPUSLICE_INLINE void move_vectors(const char* source, char* target, Index vectors) const {
    const Stride step = static_cast<Stride>(Body::kItems) * stride_;
    const auto move = [&] {
      body_.template store<Stream>(target, body_.load(source, stride_));
      source += step;
      target += Body::kItems * Body::kWidth;
    };
    for (; vectors >= kLine; vectors -= kLine) {
      if (ahead_) prefetch(source);
#pragma GCC unroll 4
      for (int i = 0; i < kLine; ++i) move();
    }
    for (; kLine > 1 && vectors; --vectors) move();
  }

  GPUSLICE_INLINE void prefetch(const char* source) const {
    Host::prefetch(source, ahead_);
    if constexpr (Body::kVectors == 0)
      for (int i = 1; i < Body::kItems && i <= 4; ++i) Host::prefetch(source, ahead_ + i * stride_);
  }

  // The items after the last whole vector: staged, or by a vector that overlaps the one before, or one by one.
  GPUSLICE_INLINE void move_rest(const char* source, char* target, Index rest, Index vectors) {
    if constexpr (kStaged) return stage(source, target, rest);
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

  // Items that do not fill a vector wait for the next run to fill it: a line written in part by way of the caches and
  // in part past them is written twice.
  GPUSLICE_INLINE void stage(const char* source, char* target, Index count) {
    for (; count; --count) {
      char* staged = edge_ + offset(target);
      item(source, staged);
      target += Body::kWidth;
      if (offset(target)) continue;
      if (edge_from_)
        memcpy(target - kVectorBytes + edge_from_, edge_ + edge_from_, kVectorBytes - edge_from_);
      else
        Host::template store<true>(target - kVectorBytes, Host::load(edge_));
      edge_from_ = 0;
    }
  }

  // Write what waits before `target`, the end of the tile.
  GPUSLICE_INLINE void finish(char* target) {
    if constexpr (kStaged) {
      const unsigned end = offset(target);
      if (end > edge_from_) memcpy(target - (end - edge_from_), edge_ + edge_from_, end - edge_from_);
    }
  }

  const Body& body_;
  const Header<Index>& header_;
  const Tile<Index>& tile_;
  const int last_;
  const Stride stride_;
  const Index length_;
  const Stride ahead_;
  const char* source_ = nullptr;  // where the current run begins
  char* target_ = nullptr;
  Index rows_ = 0;  // runs that are left along axis `last_ - 1`
  Index at_[kMaxRank] = {}, extent_[kMaxRank] = {};
  alignas(kVectorBytes) char edge_[kVectorBytes];
  unsigned edge_from_ = 0;  // the first of its bytes that is this tile's
};

}  // namespace gpuslice
