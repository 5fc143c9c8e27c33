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
  HostWalk(const Body& body, const Header<Index>& header)
      : body_(body), header_(header), last_(static_cast<int>(header.rank) - 1), stride_(header.source_stride[last_]) {
    set_length(header.shape[last_].value);
  }

  // Only the first item of a tile needs divisions; from run to run coordinates go up like an odometer.
  void move(const Tile<Index>& tile) {
    if (header_.varying == static_cast<unsigned>(last_)) set_length(tile.extent.value);
    const Place<Index> place = place_of<Host, Index, Body::kWidth>(header_, tile, tile.begin);
    Index left = tile.end - tile.begin;
    const Index first = place.room < left ? place.room : left;
    edge_from_ = offset(place.target);
    run(place.source, place.target, first, place.room);
    left -= first;
    if (!left) return header_.flat ? finish(place.target + first * Body::kWidth) : void();
    source_ = place.source - static_cast<Stride>(place.done) * stride_;
    target_ = place.target - place.done * Body::kWidth;
    start(tile);
    const Stride pitch = header_.source_stride[last_ - 1], target_pitch = this->target_pitch();
    for (;;) {
      const Index whole = left / length_, rows = whole < rows_ ? whole : rows_;
      move_rows(rows, pitch, target_pitch);
      left -= rows * length_;
      rows_ -= rows;
      if (rows_ || !left) break;
      next(pitch, target_pitch);
    }
    if (left) run(source_ += pitch, target_ += target_pitch, left, length_);
    if (header_.flat) finish(target_ + (left ? left : length_) * Body::kWidth);
  }

  // The tiles of parts [part, end) over the same rows. They are short, so that as little as can be is done a tile.
  template <class Tables>
  void move_beside(const Tables& tables, Index part, Index end, Index number) {
    if (header_.rank != 2) {
      for (; part < end; ++part) move(tile_at(header_, tables, part, number));
      return;
    }
    const Index first = number * header_.tile, left = header_.shape[0].value - first;
    const Index rows = left < header_.tile ? left : header_.tile;
    const Stride pitch = header_.source_stride[0], before = static_cast<Stride>(first) - 1;
    for (; part < end; ++part) {
      if (header_.varying == 1) length_ = tables.extent[part].value;
      const Stride target_pitch = this->target_pitch();
      source_ = reinterpret_cast<const char*>(tables.source[part]) + before * pitch;
      target_ = reinterpret_cast<char*>(tables.target[part]) + before * target_pitch;
      edge_from_ = offset(target_ + target_pitch);
      move_rows(rows, pitch, target_pitch);
      if (header_.flat) finish(target_ + target_pitch);
    }
  }

 private:
  // Vectors of a body that read a cache line, or where it gathers write one.
  static constexpr int kLine = Body::kVectors == 0 ? 4 : Body::kVectors > 2 ? 1 : 4 / Body::kVectors;
  static constexpr bool kBackward = Body::kStride < 0;
  static constexpr long long kAhead = 1280;  // bytes to fetch ahead of use; more is lost where runs lie far apart
  static constexpr Index kAtEnd = Body::kVectors ? kAhead / (Body::kVectors * kVectorBytes) : 0;  // vectors in so many

  GPUSLICE_INLINE bool staged() const { return Body::kOneTarget && header_.stream; }

  static GPUSLICE_INLINE unsigned offset(const char* target) {
    return reinterpret_cast<uintptr_t>(target) % kVectorBytes;
  }

  void set_length(Index length) {
    length_ = length;
    ahead_ = prefetch_distance();
    ahead_at_end_ = prefetch_distance_at_end();
  }

  GPUSLICE_INLINE Stride target_pitch() const {
    return header_.flat ? static_cast<Stride>(length_) * Body::kWidth : header_.target_stride[last_ - 1];
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
  GPUSLICE_OUTLINE void start(const Tile<Index>& tile) {
    Index rest = tile.begin / length_;
    for (int k = last_ - 1; k >= 0; --k) {
      extent_[k] = axis(header_, tile, k).value;
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

  // Move as many runs, from the one after `source_` and `target_` on.
  GPUSLICE_INLINE void move_rows(Index rows, Stride pitch, Stride target_pitch) {
    if (!is_whole(target_ + target_pitch, target_pitch))
      for (; rows; --rows) run(source_ += pitch, target_ += target_pitch, length_, length_);
    else if (header_.stream)
      move_whole_rows<true>(rows, pitch, target_pitch);
    else
      move_whole_rows<false>(rows, pitch, target_pitch);
  }

  template <bool Stream>
  GPUSLICE_INLINE void move_whole_rows(Index rows, Stride pitch, Stride target_pitch) {
    const Index vectors = length_ / Body::kItems;
    if constexpr (Body::kDense && Body::kOneVector) {
      if (vectors == 2) return move_short_rows<Stream, 2>(rows, pitch, target_pitch);
      if (vectors == 4) return move_short_rows<Stream, 4>(rows, pitch, target_pitch);
      if (vectors == 8) return move_short_rows<Stream, 8>(rows, pitch, target_pitch);
    }
    for (; rows; --rows) move_vectors<Stream>(source_ += pitch, target_ += target_pitch, vectors);
  }

  template <bool Stream, int Vectors>
  GPUSLICE_INLINE void move_short_rows(Index rows, Stride pitch, Stride target_pitch) {
    constexpr Stride kStep = Body::kItems * Body::kStride;
    const char* source = source_;
    char* target = target_;
    const Stride ahead = ahead_;
    for (; rows; --rows) {
      source += pitch;
      target += target_pitch;
      for (int i = 0; i < Vectors; i += 4) Host::prefetch(source + i * kStep, ahead);
      Host::Vector vector[Vectors];
#pragma GCC unroll 8
      for (int i = 0; i < Vectors; ++i) vector[i] = body_.load(source + i * kStep, Body::kStride).vector;
      Host::template store_any<Stream>(target, vector);
    }
    source_ = source;
    target_ = target;
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
    const auto move = [&]<int Count>(std::integral_constant<int, Count>) __attribute__((always_inline)) {
      if constexpr (Count == 1 || !Body::kOneVector) {
#pragma GCC unroll 4
        for (int i = 0; i < Count; ++i) {
          body.template store<Stream>(target, body.load(source, stride));
          source += kBackward ? -step : step;
          target += kBackward ? -kTargetStep : kTargetStep;
        }
      } else {
        Host::Vector vector[Count];
#pragma GCC unroll 4
        for (int i = 0; i < Count; ++i, source += kBackward ? -step : step)
          vector[kBackward ? Count - 1 - i : i] = body.load(source, stride).vector;
        Host::template store<Stream>(kBackward ? target - (Count - 1) * kTargetStep : target, vector);
        target += Count * (kBackward ? -kTargetStep : kTargetStep);
      }
    };
    constexpr std::integral_constant<int, 1> kOne;
    constexpr std::integral_constant<int, kLine> kAll;
    if constexpr (Stream && Body::kOneVector && kLine > 1) {
      const char* edge = kBackward ? target + kTargetStep : target;
      if (vectors && reinterpret_cast<uintptr_t>(edge) % Host::kStreamBytes) {
        if (ahead) prefetch<1>(source, stride, ahead);
        move(kOne);
        --vectors;
      }
    }
    for (; vectors >= kLine; vectors -= kLine) {
      if (ahead) prefetch<kLine>(source, stride, vectors > kAtEnd ? ahead : ahead_at_end);
      move(kAll);
    }
    if constexpr (kLine > 1) {
      if (ahead && vectors) prefetch<kLine - 1>(source, stride, ahead);
      if constexpr (kLine > 2)
        if (vectors >= 2) {
          move(std::integral_constant<int, 2>{});
          vectors -= 2;
        }
      if (vectors) move(kOne);
    }
  }

  // The lines that so many vectors come from, one where their items are close together.
  template <int Count>
  static GPUSLICE_INLINE void prefetch(const char* source, Stride stride, Stride ahead) {
    Host::prefetch(source, ahead);
    if constexpr (Body::kVectors == 0) {
      const Stride apart = stride < 0 ? -stride : stride;
      const int every = apart >= kLineBytes ? 1 : apart ? static_cast<int>(kLineBytes / apart) : Count * Body::kItems;
      for (int i = every; i < Count * Body::kItems; i += every) Host::prefetch(source, ahead + i * stride);
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
  const int last_;
  const Stride stride_;
  Index length_;
  Stride ahead_;                  // bytes from what is moved to what is fetched
  Stride ahead_at_end_;           // and in the last kAhead bytes of a run
  const char* source_ = nullptr;  // where the current run begins
  char* target_ = nullptr;
  Index rows_ = 0;  // runs that are left along axis `last_ - 1`
  Index at_[kMaxRank] = {}, extent_[kMaxRank] = {};
  alignas(kVectorBytes) char edge_[2 * kVectorBytes];
  unsigned edge_from_ = 0;  // the first of its bytes that is this tile's
};

}  // namespace gpuslice
