// The way of a thread block through its share of the pairs: chunks of pairs that belong to one
// kernel offset. All roles of a block walk the same way by themselves.
#pragma once

#include <pumice/platform.h>
#include <pumice/shared/gradient_spec.h>

namespace pumice {

/// Where each offset's pairs and chunks begin, in shared memory.
class OffsetTable {
 public:
  PUMICE_DEVICE OffsetTable(unsigned char* memory, int32_t offsets)
      : pair_begin_(reinterpret_cast<int64_t*>(memory)),
        chunk_begin_(reinterpret_cast<int32_t*>(pair_begin_ + offsets + 1)),
        offsets_(offsets) {}

  /// By all threads of the block; a block_sync follows. The first warp adds up.
  PUMICE_DEVICE void fill(const PairListRef& pairs, int32_t tile_pairs) const {
    for (int32_t k = thread_index(); k <= offsets_; k += block_size())
      pair_begin_[k] = pairs.offset_begin[k];
    block_sync();
    if (warp_index() != 0) return;
    int32_t before = 0;
    for (int32_t first = 0; first < offsets_; first += kWarpLanes) {
      const int32_t k = first + lane_index();
      const int64_t size = k < offsets_ ? pair_begin_[k + 1] - pair_begin_[k] : 0;
      int32_t sum = static_cast<int32_t>((size + tile_pairs - 1) / tile_pairs);
      for (int32_t step = 1; step < kWarpLanes; step *= 2) {
        const int32_t below = warp_shuffle_up(sum, step);
        sum += lane_index() >= step ? below : 0;
      }
      if (k < offsets_) chunk_begin_[k + 1] = before + sum;
      before += warp_shuffle(sum, kWarpLanes - 1);
    }
    if (lane_index() == 0) chunk_begin_[0] = 0;
  }

  PUMICE_DEVICE int32_t chunks() const { return chunk_begin_[offsets_]; }
  PUMICE_DEVICE int32_t chunk_begin(int32_t offset) const { return chunk_begin_[offset]; }
  PUMICE_DEVICE int64_t pair_begin(int32_t offset) const { return pair_begin_[offset]; }

 private:
  int64_t* pair_begin_;
  int32_t* chunk_begin_;
  int32_t offsets_;
};

/// Chunks [chunk(), end) of a share.
class ChunkWalk {
 public:
  PUMICE_DEVICE ChunkWalk(const OffsetTable& table, int32_t block, int32_t blocks)
      : table_(table),
        chunk_(static_cast<int32_t>(chunk_share(table.chunks(), block, blocks))),
        end_(static_cast<int32_t>(chunk_share(table.chunks(), block + 1, blocks))) {
    find_offset();
  }

  PUMICE_DEVICE bool done() const { return chunk_ >= end_; }
  PUMICE_DEVICE int32_t left() const { return end_ - chunk_; }
  PUMICE_DEVICE int32_t offset() const { return offset_; }
  /// Chunks left of this offset in the share.
  PUMICE_DEVICE int32_t left_of_offset() const {
    const int32_t next = table_.chunk_begin(offset_ + 1);
    return (next < end_ ? next : end_) - chunk_;
  }
  /// The first pair of the chunk, and the end of its offset's pairs.
  PUMICE_DEVICE int64_t first_pair(int32_t tile_pairs) const {
    return table_.pair_begin(offset_) + int64_t{chunk_ - table_.chunk_begin(offset_)} * tile_pairs;
  }
  PUMICE_DEVICE int64_t end_of_pairs() const { return table_.pair_begin(offset_ + 1); }

  /// To the next chunk; true when it belongs to another offset.
  PUMICE_DEVICE bool advance() {
    ++chunk_;
    if (done() || chunk_ < table_.chunk_begin(offset_ + 1)) return false;
    find_offset();
    return true;
  }

 private:
  /// Offsets without pairs are passed over.
  PUMICE_DEVICE void find_offset() {
    if (done()) return;
    while (table_.chunk_begin(offset_ + 1) <= chunk_)
      ++offset_;
  }

  const OffsetTable& table_;
  int32_t chunk_;
  int32_t end_;
  int32_t offset_ = 0;
};

}   // namespace pumice
