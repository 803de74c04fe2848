// A stable least-significant-digit radix sort of (key, value) pairs, a digit of at most 8 bits a
// pass. Launched over the capacity, it works by the count.
//
//   keys      │ tile 0 │ tile 1 │ tile 2 │ …     1,024 keys a tile, a block each
//
//   sort_count     how many keys have each digit of each pass: no pass changes that
//   sort_scatter   a launch a pass: each key to the place where its digit's keys begin
//                  + those of its digit in the tiles before (grid/look_back.h, a thread a digit)
//                  + its rank in the tile (block/digit_ranks.h)
//   sort_small     all passes of up to 4,096 keys, by one block
//
// On an H200 a pass of 225,000 keys that summed the histograms of all tiles, and counted the next
// pass's in global memory, took 18 µs, of which 6 were those counts.
#pragma once

#include <pumice/block/digit_ranks.h>
#include <pumice/block/scan.h>
#include <pumice/grid/look_back.h>
#include <pumice/grid/sort_arguments.h>

namespace pumice {

template <class Key> PUMICE_DEVICE uint32_t digit_of(Key key, int shift, int bits) {
  return static_cast<uint32_t>(key >> shift) & ((uint32_t{1} << bits) - 1);
}

PUMICE_DEVICE int digit_bits(const SortDigits& digits, int pass) {
  const int left = digits.bits - pass * digits.width;
  return left < digits.width ? left : digits.width;
}

/// One block for every kSortCountTile keys.
template <class Key> PUMICE_DEVICE void count_digits(const SortCount<Key>& a) {
  using Bins = uint32_t[kMostSortPasses][kDigits];
  PUMICE_BLOCK_SHARED(Bins, bins);
  const int64_t rows = a.rows.rows();
  const int64_t first = int64_t{block_index()} * kSortCountTile;
  if (first >= rows) return;
  for (int pass = 0; pass < a.digits.passes; ++pass)
    bins[pass][thread_index()] = 0;
  block_sync();
  Key key[kSortCountItems];
  PUMICE_UNROLL
  for (int item = 0; item < kSortCountItems; ++item) {
    const int64_t i = first + item * kSortThreads + thread_index();
    key[item] = i < rows ? a.keys[i] : Key{0};
  }
  for (int pass = 0; pass < a.digits.passes; ++pass) {
    PUMICE_UNROLL
    for (int item = 0; item < kSortCountItems; ++item) {
      if (first + item * kSortThreads + thread_index() >= rows) continue;
      const uint32_t digit = digit_of(key[item], pass * a.digits.width, digit_bits(a.digits, pass));
      atomic_add(&bins[pass][digit], 1u);
    }
  }
  block_sync();
  for (int pass = 0; pass < a.digits.passes; ++pass) {
    const uint32_t mine = bins[pass][thread_index()];
    if (mine > 0) atomic_add(&a.totals[pass * kDigits + thread_index()], mine);
  }
}

/// The pairs of a tile, as its threads hold them.
template <class Key, int kThreads> struct SortTile {
  Key key[kSortItems];
  uint32_t value[kSortItems];
  uint32_t digit[kSortItems];
  DigitRanks<kThreads, kSortItems> ranks;

  PUMICE_DEVICE void load(const Key* keys, const uint32_t* values, int64_t first, int64_t rows,
                          int shift, int bits) {
    PUMICE_UNROLL
    for (int item = 0; item < kSortItems; ++item) {
      const int64_t i = first + item * kWarpThreads;
      const bool there = i < rows;
      key[item] = there ? keys[i] : Key{0};
      value[item] = !there || values == nullptr ? static_cast<uint32_t>(i) : values[i];
      digit[item] = there ? digit_of(key[item], shift, bits) : kNoDigit;
    }
    ranks.find(digit);
  }
  /// `position` is where the tile's pairs of each digit begin.
  PUMICE_DEVICE void scatter(const uint32_t (&position)[kDigits], Key* keys,
                             uint32_t* values) const {
    PUMICE_UNROLL
    for (int item = 0; item < kSortItems; ++item) {
      if (digit[item] == kNoDigit) continue;
      const uint32_t to = position[digit[item]] + ranks.rank[item];
      keys[to] = key[item];
      values[to] = value[item];
    }
  }
};

/// One block a tile.
template <class Key> PUMICE_DEVICE void scatter_by_digit(const SortPass<Key>& pass) {
  using Positions = uint32_t[kDigits];
  static_assert(kSortThreads == kDigits, "a thread for each digit");
  PUMICE_BLOCK_SHARED(Positions, position);
  const int64_t rows = pass.rows.rows();
  const int32_t tile = take_tile(pass.ticket);
  const int64_t tile_first = int64_t{tile} * kSortTile;
  if (tile_first >= rows) return;
  SortTile<Key, kSortThreads> pairs;
  pairs.load(pass.keys, pass.values, warp_first_element<kSortItems>(tile_first) + lane_index(),
             rows, pass.shift, pass.bits);
  uint32_t total = 0;
  const uint32_t lower_digits =
      block_exclusive_sum<kSortThreads>(pass.totals[thread_index()], total);
  position[thread_index()] =
      lower_digits + look_back(pass.states + thread_index(), kDigits, tile, pairs.ranks.count);
  block_sync();
  pairs.scatter(position, pass.sorted_keys, pass.sorted_values);
}

/// One block.
template <class Key> PUMICE_DEVICE void sort_all_passes(const SmallSort<Key>& a) {
  using Positions = uint32_t[kDigits];
  PUMICE_BLOCK_SHARED(Positions, position);
  const int64_t rows = a.rows.rows();
  const int64_t first = warp_first_element<kSortItems>(0) + lane_index();
  for (int pass = 0; pass < a.digits.passes; ++pass) {
    const int from = pass % 2;
    SortTile<Key, kSmallSortThreads> pairs;
    pairs.load(a.keys[from], pass > 0 || a.has_values != 0 ? a.values[from] : nullptr, first, rows,
               pass * a.digits.width, digit_bits(a.digits, pass));
    uint32_t total = 0;
    const uint32_t lower_digits = block_exclusive_sum<kSmallSortThreads>(pairs.ranks.count, total);
    if (thread_index() < kDigits) position[thread_index()] = lower_digits;
    block_sync();
    pairs.scatter(position, a.keys[1 - from], a.values[1 - from]);
    block_sync();   // the next pass reads what other threads have written
  }
}

PUMICE_KERNEL PUMICE_THREADS(kSortThreads) void sort_count_u64(PUMICE_ARGUMENT(SortCount<uint64_t>)
                                                                   a) {
  count_digits(a);
}
PUMICE_KERNEL PUMICE_THREADS(kSortThreads) void sort_scatter_u64(PUMICE_ARGUMENT(SortPass<uint64_t>)
                                                                     pass) {
  scatter_by_digit(pass);
}
PUMICE_KERNEL PUMICE_THREADS(kSmallSortThreads) void sort_small_u64(
    PUMICE_ARGUMENT(SmallSort<uint64_t>) a) {
  sort_all_passes(a);
}
PUMICE_KERNEL PUMICE_THREADS(kSortThreads) void sort_count_u32(PUMICE_ARGUMENT(SortCount<uint32_t>)
                                                                   a) {
  count_digits(a);
}
PUMICE_KERNEL PUMICE_THREADS(kSortThreads) void sort_scatter_u32(PUMICE_ARGUMENT(SortPass<uint32_t>)
                                                                     pass) {
  scatter_by_digit(pass);
}
PUMICE_KERNEL PUMICE_THREADS(kSmallSortThreads) void sort_small_u32(
    PUMICE_ARGUMENT(SmallSort<uint32_t>) a) {
  sort_all_passes(a);
}

}   // namespace pumice
