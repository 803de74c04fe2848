// A stable least-significant-digit radix sort of (key, value) pairs, a digit of at most 8 bits a
// pass. Launched over the capacity, it works by the count.
//
//   keys      │ tile 0 │ tile 1 │ tile 2 │ …     2,048 keys a tile, a block each
//                │        │        │
//   histogram  [256]    [256]    [256]           keys of each digit in each tile
//                └── summed over the tiles before and the digits below ──▶ first position
//   scatter     each key to first position + its rank in the tile (block/digit_ranks.h)
//
// While it scatters, a pass counts the next pass's histogram: it knows where each key goes, hence
// its tile. So a pass is one launch; above 256 tiles, where adding up 256 x tiles numbers in every
// block would take longer than a launch, it is two, with `sort_spine` between.
#pragma once

#include <pumice/block/digit_ranks.h>
#include <pumice/block/scan.h>
#include <pumice/grid/sort_digit.h>

namespace pumice {

PUMICE_DEVICE int64_t sort_tiles(const RowCountRef& rows) {
  return (rows.rows() + kSortTile - 1) / kSortTile;
}

/// One block a tile.
template <class Key> PUMICE_DEVICE void count_digits(const SortPass<Key>& pass) {
  using Bins = uint32_t[kDigits];
  PUMICE_BLOCK_SHARED(Bins, bins);
  const int64_t rows = pass.rows.rows();
  const int64_t first = int64_t{block_index()} * kSortTile;
  if (first >= rows) return;
  if (thread_index() < kDigits) bins[thread_index()] = 0;
  block_sync();
  for (int64_t i = first + thread_index(); i < rows && i < first + kSortTile; i += kSortThreads)
    atomic_add(&bins[digit_of(pass.keys[i], pass.shift, pass.bits)], 1u);
  block_sync();
  if (thread_index() < kDigits) {
    pass.histogram[int64_t{block_index()} * kDigits + thread_index()] = bins[thread_index()];
  }
}

/// Elements of digit `thread_index()` in all tiles, and in those before this block's.
struct DigitSums {
  uint32_t all;
  uint32_t before;
};

PUMICE_DEVICE DigitSums sum_digits(const uint32_t* histogram, int64_t tiles) {
  constexpr int kGroups = kSortThreads / kDigits;   // threads that share a digit's tiles
  using Sums = uint32_t[2][kGroups][kDigits];
  PUMICE_BLOCK_SHARED(Sums, sums);
  const int digit = thread_index() % kDigits;
  const int group = thread_index() / kDigits;
  DigitSums mine{0, 0};
  // Sixteen loads at a time: one after the other, 128 tiles take longer than the rest of the pass.
  PUMICE_UNROLL_BY(16)
  for (int64_t tile = group; tile < tiles; tile += kGroups) {
    const uint32_t here = histogram[tile * kDigits + digit];
    mine.all += here;
    mine.before += tile < block_index() ? here : 0;
  }
  sums[0][group][digit] = mine.all;
  sums[1][group][digit] = mine.before;
  block_sync();
  mine = {0, 0};
  PUMICE_UNROLL
  for (int i = 0; i < kGroups; ++i) {
    mine.all += sums[0][i][digit];
    mine.before += sums[1][i][digit];
  }
  return mine;
}

/// Where the first element of digit `thread_index()` of this block's tile goes.
template <class Key>
PUMICE_DEVICE uint32_t first_position(const SortPass<Key>& pass, int64_t tiles) {
  DigitSums sums{0, 0};
  if (pass.before == nullptr) {
    sums = sum_digits(pass.histogram, tiles);
  } else if (thread_index() < kDigits) {
    sums.all = pass.totals[thread_index()];
    sums.before = pass.before[int64_t{block_index()} * kDigits + thread_index()];
  }
  uint32_t total = 0;
  const uint32_t lower_digits =
      block_exclusive_sum<kSortThreads>(thread_index() < kDigits ? sums.all : 0, total);
  return lower_digits + sums.before;
}

/// One block a tile.
template <class Key> PUMICE_DEVICE void scatter_by_digit(const SortPass<Key>& pass) {
  using Positions = uint32_t[kDigits];
  PUMICE_BLOCK_SHARED(Positions, position);
  const int64_t rows = pass.rows.rows();
  const int64_t tile_first = int64_t{block_index()} * kSortTile;
  if (tile_first >= rows) return;
  const int64_t first = warp_first_element<kSortItems>(tile_first) + lane_index();
  Key key[kSortItems];
  uint32_t value[kSortItems];
  uint32_t digit[kSortItems];
  PUMICE_UNROLL
  for (int item = 0; item < kSortItems; ++item) {
    const int64_t i = first + item * kWarpThreads;
    const bool there = i < rows;
    key[item] = there ? pass.keys[i] : Key{0};
    value[item] = !there || pass.values == nullptr ? static_cast<uint32_t>(i) : pass.values[i];
    digit[item] = there ? digit_of(key[item], pass.shift, pass.bits) : kNoDigit;
  }
  const uint32_t base = first_position(pass, sort_tiles(pass.rows));
  if (thread_index() < kDigits) position[thread_index()] = base;
  DigitRanks<kSortThreads, kSortItems> ranks;
  ranks.find(digit);
  PUMICE_UNROLL
  for (int item = 0; item < kSortItems; ++item) {
    if (digit[item] == kNoDigit) continue;
    const uint32_t to = position[digit[item]] + ranks.rank[item];
    pass.sorted_keys[to] = key[item];
    pass.sorted_values[to] = value[item];
    if (pass.next_histogram != nullptr) {
      const uint32_t next = digit_of(key[item], pass.next_shift, pass.next_bits);
      atomic_add(&pass.next_histogram[int64_t{to / kSortTile} * kDigits + next], 1u);
    }
  }
}

/// What each digit has in the tiles before each, and in all. One block for every 32 digits; a warp
/// takes a run of tiles, a lane a digit.
PUMICE_DEVICE void sum_tiles(const SortSpine& spine) {
  constexpr int kWarps = kSpineThreads / kWarpThreads;
  using Sums = uint32_t[kWarps][kWarpThreads];
  PUMICE_BLOCK_SHARED(Sums, sums);
  const int64_t tiles = sort_tiles(spine.rows);
  const int64_t run = (tiles + kWarps - 1) / kWarps;
  const int64_t begin = run * warp_index();
  const int64_t end = begin + run < tiles ? begin + run : tiles;
  const int digit = block_index() * kWarpThreads + lane_index();
  uint32_t sum = 0;
  for (int64_t tile = begin; tile < end; ++tile)
    sum += spine.histogram[tile * kDigits + digit];
  sums[warp_index()][lane_index()] = sum;
  block_sync();
  uint32_t all = 0;
  uint32_t before = 0;
  for (int warp = 0; warp < kWarps; ++warp) {
    if (warp < warp_index()) before += sums[warp][lane_index()];
    all += sums[warp][lane_index()];
  }
  if (warp_index() == 0) spine.totals[digit] = all;
  for (int64_t tile = begin; tile < end; ++tile) {
    spine.before[tile * kDigits + digit] = before;
    before += spine.histogram[tile * kDigits + digit];
  }
}

PUMICE_KERNEL PUMICE_THREADS(kSortThreads) void sort_count_u64(PUMICE_ARGUMENT(SortPass<uint64_t>)
                                                                   pass) {
  count_digits(pass);
}
PUMICE_KERNEL PUMICE_THREADS(kSortThreads) void sort_scatter_u64(PUMICE_ARGUMENT(SortPass<uint64_t>)
                                                                     pass) {
  scatter_by_digit(pass);
}
PUMICE_KERNEL PUMICE_THREADS(kSortThreads) void sort_count_u32(PUMICE_ARGUMENT(SortPass<uint32_t>)
                                                                   pass) {
  count_digits(pass);
}
PUMICE_KERNEL PUMICE_THREADS(kSortThreads) void sort_scatter_u32(PUMICE_ARGUMENT(SortPass<uint32_t>)
                                                                     pass) {
  scatter_by_digit(pass);
}
PUMICE_KERNEL PUMICE_THREADS(kSpineThreads) void sort_spine(PUMICE_ARGUMENT(SortSpine) spine) {
  sum_tiles(spine);
}

}   // namespace pumice
