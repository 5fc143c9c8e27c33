// How one host thread finds the runs of its blocks, for the kernels whose bodies are Rows, Planes and Rearranged: the
// same code for every kernel. HostWalk in host_runs.h moves them.
//
// One thread's job: consecutive blocks; see run_kernel() in host_kernels.cpp.
// Limits: 1 to kMaxRank axes, none of them empty.
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

// Return where the last item of a block goes.
GPUSLICE_OUTLINE inline const char* end_of_block(const Tables& tables, HostIndex block, int width) {
  const Tile<HostIndex> tile = tile_of_block(tables, block);
  return tile.target + place_of(tables.header, tile, tile.end - 1, width).target;
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
    bool streams;       // whether it may store past the caches vector by vector
  };

  Walk(const Header<HostIndex>& header, const Traits& traits, bool past_caches);

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

  static constexpr HostStride kSpanOfRows = 1 << 15;
  static constexpr HostStride kAhead = 1280;  // bytes to fetch ahead of use; more is lost if runs lie far apart

  const Header<HostIndex>& header_;
  const Traits traits_;
  const int last_;
  const bool past_caches_;                             // whether to store past the caches
  const bool stream_;                                  // and vector by vector
  const HostStride stride_;                            // bytes between the items of a run
  const HostStride pitch_;                             // bytes between runs of the source
  HostStride target_pitch_ = 0;                        // and of the target
  HostStride ahead_ = 0;                               // bytes from what is moved to what is fetched
  HostStride ahead_at_end_ = 0;                        // and in the last kAhead bytes of a run
  alignas(kVectorBytes) char edge_[5 * kVectorBytes];  // the longest pixel, from any place in a vector on
  unsigned edge_from_ = 0;                             // the first of its bytes that is this tile's

 private:
  void move(const Tile<HostIndex>& tile);
  void move_beside(const Tables& tables, HostIndex part, HostIndex end, HostIndex number);
  void move_rows(const Tables& tables, HostIndex part, HostIndex first, HostIndex rows);
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

inline Walk::Walk(const Header<HostIndex>& header, const Traits& traits, bool past_caches)
    : header_(header),
      traits_(traits),
      last_(static_cast<int>(header.rank) - 1),
      past_caches_(past_caches),
      stream_(past_caches && traits.streams),
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
  const char* source = tile.source + place.source;
  char* target = tile.target + place.target;
  HostIndex left = tile.end - tile.begin;
  const HostIndex first = place.room < left ? place.room : left;
  edge_from_ = offset(target);
  move_runs(source, target, 1, first, place.room);
  char* end = target + first * traits_.width;
  left -= first;
  if (left) {
    source_ = source - static_cast<HostStride>(place.done) * stride_ + pitch_;
    target_ = target - place.done * traits_.width + target_pitch_;
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
  if (header_.rank > 2) {
    for (; part < end; ++part) move(tile_at(header_, tables, part, number));
    return;
  }
  const HostIndex first = number * header_.tile, left = header_.shape[0].value - first;
  const HostIndex rows = left < header_.tile ? left : header_.tile;
  const HostIndex bytes = (last_ ? length_ : 1) * traits_.width;  // of a part in each row
  // Parts that share cache lines of the source are moved a few rows at a time, if the lines of all rows do not stay in
  // the first-level cache until the next part. The rows at once make whole vectors.
  const HostStride pitch = header_.source_stride[0] < 0 ? -header_.source_stride[0] : header_.source_stride[0];
  const bool share = header_.varying == kMaxRank && bytes < kVectorBytes && rows * pitch > kSpanOfRows;
  const HostIndex group = share ? kLineBytes / bytes : 1;
  const HostIndex at_once = !share ? rows : bytes < 8 ? 16 * (8 / bytes) : 16;
  for (HostIndex next; part < end; part = next) {
    next = end - part < group ? end : part + group;
    for (HostIndex done = 0; done < rows; done += at_once)
      for (HostIndex i = part; i < next; ++i)
        move_rows(tables, i, first + done, rows - done < at_once ? rows - done : at_once);
  }
}

// Move some rows of a part, from one on: entries of axis 0.
inline void Walk::move_rows(const Tables& tables, HostIndex part, HostIndex first, HostIndex rows) {
  if (last_ && header_.varying == 1) {
    length_ = tables.extent[part].value;
    if (header_.flat) target_pitch_ = static_cast<HostStride>(length_) * traits_.width;
  }
  const HostStride apart = last_ ? target_pitch_ : traits_.width;
  const char* source =
      reinterpret_cast<const char*>(tables.source[part]) + static_cast<HostStride>(first) * header_.source_stride[0];
  char* target = reinterpret_cast<char*>(tables.target[part]) + static_cast<HostStride>(first) * apart;
  edge_from_ = offset(target);
  if (last_)
    move_runs(source, target, rows, length_, length_);
  else
    move_runs(source, target, 1, rows, length_ - first);
  if (stream_ && header_.flat) finish(target + static_cast<HostStride>(rows) * apart);
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

// Go from the end of the last run of an entry of axis `last_ - 2` to the first run of the next entry.
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

}  // namespace GPUSLICE_SET
}  // namespace gpuslice
