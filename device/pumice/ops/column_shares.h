// What the blocks of a column walk left in shares, added up by every block that needs it, for its
// own item and tile of columns:
//
//    warp 0    share 0, 16, 32, …   ─┐
//    warp 1    share 1, 17, 33, …   ─┤ in shared memory, then warp 0: one thread a column
//    …                               │
//    warp 15   share 15, 31, …      ─┘
//
// All of a warp's shares are under way at a time, and every block adds in the same order: all of
// them come to the same bits.
#pragma once

#include <pumice/ops/column_walk.h>

namespace pumice {

inline constexpr int kColumnWarps = kColumnThreads / kWarpThreads;
inline constexpr int kSharesOfWarp = kSharesAtOnce / kColumnWarps;
static_assert(kColumnTile == kWarpThreads, "a thread of a warp has one column of the tile");

/// Sums on their way to warp 0, and what it made of them, for all threads of the block.
struct ColumnScratch {
  double sum[kColumnWarps][2][kColumnTile];
  float first[kColumnTile];
  float second[kColumnTile];
};

/// Rows of a share, in fp64.
class ShareRows {
 public:
  PUMICE_DEVICE explicit ShareRows(const BlockShare& of) : size_(of.size), step_(of.step) {}
  PUMICE_DEVICE int64_t size() const { return size_; }
  PUMICE_DEVICE double of(int32_t share) const {
    const int64_t left = size_ - step_ * share;
    // A share has fewer than 2^31 rows, which convert faster and in fewer registers than more.
    return static_cast<double>(static_cast<int32_t>(left < 0 ? 0 : left < step_ ? left : step_));
  }

 private:
  int64_t size_;
  int64_t step_;
};

/// Calls add(share, first, second, sums) with the two partial results of every share of an item,
/// and then finish(channel, sums) in one thread a column. Whatever that stores in `scratch`
/// everybody sees. For all threads of a block.
template <class Add, class Finish>
PUMICE_DEVICE void sum_shares(const ColumnShape& shape, const BlockShare& of, const float* partial,
                              ColumnScratch& scratch, const Add& add, const Finish& finish) {
  const int32_t channel = block_index_y() * kColumnTile + lane_index();
  const bool there = channel < shape.channels;
  double sums[2] = {0.0, 0.0};
  PUMICE_ROLLED
  for (int32_t first = warp_index(); first < of.shares; first += kSharesAtOnce) {
    float value[kSharesOfWarp][2];
    PUMICE_UNROLL
    for (int32_t i = 0; i < kSharesOfWarp; ++i) {
      const int32_t share = first + i * kColumnWarps;
      const bool wanted = there && share < of.shares;
      const int64_t at = partial_row(shape, of.item, share, 0) + channel;
      value[i][0] = wanted ? partial[at] : 0.0f;
      value[i][1] = wanted ? partial[at + shape.channels] : 0.0f;
    }
    PUMICE_UNROLL
    for (int32_t i = 0; i < kSharesOfWarp; ++i) {
      const int32_t share = first + i * kColumnWarps;
      if (share < of.shares) add(share, value[i][0], value[i][1], sums);
    }
  }
  scratch.sum[warp_index()][0][lane_index()] = sums[0];
  scratch.sum[warp_index()][1][lane_index()] = sums[1];
  block_sync();
  if (warp_index() == 0 && there) {
    PUMICE_UNROLL
    for (int32_t warp = 1; warp < kColumnWarps; ++warp) {
      sums[0] += scratch.sum[warp][0][lane_index()];
      sums[1] += scratch.sum[warp][1][lane_index()];
    }
    finish(channel, sums);
  }
  block_sync();
}

}   // namespace pumice
