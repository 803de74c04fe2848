// A stable least-significant-digit radix sort of (key, value) pairs, nine bits a pass at most, of
// one or several segments at once. Launched over the capacities, it works by the counts.
//
//   keys      │ tile 0 │ tile 1 │ tile 2 │ …     2,048 keys a tile, a block each
//
//   sort_count     how many keys have each digit of each pass: no pass changes that; left out
//                  where whoever writes the keys counts (grid/digit_counts.h)
//   sort_scatter   a launch a pass: each key to the place where its digit's keys begin
//                  + those of its digit in the tiles before (grid/look_back.h, a thread a digit)
//                  + its rank in the tile (block/digit_ranks.h); keys of one digit leave the tile
//                  side by side
//   sort_small     all passes of segments of up to 4,096 keys, a block each
//
// A segment with fewer bits than others is done after fewer passes: nothing tells segments apart
// but their places.
#pragma once

#include <pumice/block/digit_ranks.h>
#include <pumice/block/scan.h>
#include <pumice/grid/digit_counts.h>
#include <pumice/grid/look_back.h>

namespace pumice {

/// The segment that this block of a launch works for.
template <class Key> PUMICE_DEVICE int segment_of_block(const SortBatch<Key>& batch) {
  int at = 0;
  while (at + 1 < batch.segments && batch.first_block[at + 1] <= block_index())
    ++at;
  return at;
}

/// One block a tile.
template <class Key> PUMICE_DEVICE void count_digits(const SortBatch<Key>& batch) {
  PUMICE_BLOCK_SHARED(DigitCounts, counts);
  const int number = segment_of_block(batch);
  const SortSegment& segment = batch.segment[number];
  const int64_t rows = segment.rows.rows();
  const int64_t first = int64_t{block_index() - batch.first_block[number]} * kSortTile;
  if (first >= rows) return;
  counts.clear<kSortThreads>(segment.totals.digits);
  const Key* const keys = batch.keys[0] + segment.first;
  Key key[kSortItems];
  PUMICE_UNROLL
  for (int item = 0; item < kSortItems; ++item) {
    const int64_t i = first + item * kSortThreads + thread_index();
    key[item] = i < rows ? keys[i] : Key{0};
  }
  PUMICE_UNROLL
  for (int item = 0; item < kSortItems; ++item) {
    if (first + item * kSortThreads + thread_index() < rows)
      counts.count(segment.totals.digits, key[item]);
  }
  counts.add_to<kSortThreads>(segment.totals);
}

/// The pairs of a tile in the order of a digit.
template <class Key> struct SortedTile {
  Key key[kSortTile];
  uint32_t value[kSortTile];
};

/// The pairs of a tile, as its threads hold them.
template <class Key, int kThreads> struct SortTile {
  Key key[kSortItems];
  uint32_t value[kSortItems];
  uint32_t digit[kSortItems];
  DigitRanks<kThreads, kSortItems, kSortDigits> ranks;

  PUMICE_DEVICE void load(const Key* keys, const uint32_t* values, int64_t first, int64_t rows,
                          int shift, int bits) {
    PUMICE_UNROLL
    for (int item = 0; item < kSortItems; ++item) {
      const int64_t i = first + item * kWarpThreads;
      const bool there = i < rows;
      key[item] = there ? keys[i] : Key{0};
      value[item] = !there || values == nullptr ? static_cast<uint32_t>(i) : values[i];
      digit[item] = there ? digit_of(key[item], shift, bits) : ranks.kNoDigit;
    }
    ranks.find(digit);
  }
  /// To where they stand in the tile once it is sorted; `begin` is where each digit begins there.
  PUMICE_DEVICE void sort_into(const uint32_t (&begin)[kSortDigits], SortedTile<Key>& tile) const {
    PUMICE_UNROLL
    for (int item = 0; item < kSortItems; ++item) {
      if (digit[item] == ranks.kNoDigit) continue;
      const uint32_t to = begin[digit[item]] + ranks.rank[item];
      tile.key[to] = key[item];
      tile.value[to] = value[item];
    }
  }
  /// `position` is where the tile's pairs of each digit begin.
  PUMICE_DEVICE void scatter(const uint32_t (&position)[kSortDigits], Key* keys,
                             uint32_t* values) const {
    PUMICE_UNROLL
    for (int item = 0; item < kSortItems; ++item) {
      if (digit[item] == ranks.kNoDigit) continue;
      const uint32_t to = position[digit[item]] + ranks.rank[item];
      keys[to] = key[item];
      values[to] = value[item];
    }
  }
};

/// One block a tile, of the segments that take this pass.
template <class Key> PUMICE_DEVICE void scatter_by_digit(const SortBatch<Key>& batch) {
  using Positions = uint32_t[kSortDigits];
  static_assert(kSortThreads == kSortDigits, "a thread for each digit");
  PUMICE_BLOCK_SHARED(Positions, begin);      // of each digit in the sorted tile
  PUMICE_BLOCK_SHARED(Positions, position);   // and in the segment, less that
  PUMICE_BLOCK_SHARED(SortedTile<Key>, sorted);
  const SortSegment& segment = batch.segment[segment_of_block(batch)];
  const int pass = batch.pass;
  const int from = pass % 2;
  const int64_t rows = segment.rows.rows();
  const int32_t tile = take_tile(segment.tickets + pass);
  const int64_t tile_first = int64_t{tile} * kSortTile;
  if (tile_first >= rows) return;
  SortTile<Key, kSortThreads> pairs;
  pairs.load(batch.keys[from] + segment.first,
             pass > 0 || batch.has_values != 0 ? batch.values[from] + segment.first : nullptr,
             warp_first_element<kSortItems>(tile_first) + lane_index(), rows,
             pass * segment.totals.digits.width, digit_bits(segment.totals.digits, pass));
  uint32_t* const states =
      segment.states + int64_t{pass} * segment.tiles * kSortDigits + thread_index();
  say_part(states, kSortDigits, tile, pairs.ranks.count);
  uint32_t total = 0;
  const uint32_t mine = block_exclusive_sum<kSortThreads>(pairs.ranks.count, total);
  begin[thread_index()] = mine;
  block_sync();
  pairs.sort_into(begin, sorted);
  const uint32_t lower_digits = block_exclusive_sum<kSortThreads>(
      segment.totals.count[pass * kSortDigits + thread_index()], total);
  const uint32_t before = look_back(states, kSortDigits, tile);
  say_sum(states, kSortDigits, tile, before + pairs.ranks.count);
  position[thread_index()] = lower_digits + before - mine;
  block_sync();
  const int64_t left = rows - tile_first;
  const int here = left < kSortTile ? static_cast<int>(left) : kSortTile;
  Key* const keys = batch.keys[1 - from] + segment.first;
  uint32_t* const values = batch.values[1 - from] + segment.first;
  const int shift = pass * segment.totals.digits.width;
  const int bits = digit_bits(segment.totals.digits, pass);
  for (int i = thread_index(); i < here; i += kSortThreads) {
    const Key key = sorted.key[i];
    const uint32_t to = position[digit_of(key, shift, bits)] + static_cast<uint32_t>(i);
    keys[to] = key;
    values[to] = sorted.value[i];
  }
}

/// One block a segment.
template <class Key> PUMICE_DEVICE void sort_all_passes(const SortBatch<Key>& batch) {
  using Positions = uint32_t[kSortDigits];
  PUMICE_BLOCK_SHARED(Positions, position);
  const SortSegment& segment = batch.segment[block_index()];
  const int64_t rows = segment.rows.rows();
  const int64_t first = warp_first_element<kSortItems>(0) + lane_index();
  for (int pass = 0; pass < segment.totals.digits.passes; ++pass) {
    const int from = pass % 2;
    SortTile<Key, kSmallSortThreads> pairs;
    pairs.load(batch.keys[from] + segment.first,
               pass > 0 || batch.has_values != 0 ? batch.values[from] + segment.first : nullptr,
               first, rows, pass * segment.totals.digits.width,
               digit_bits(segment.totals.digits, pass));
    uint32_t total = 0;
    const uint32_t lower_digits = block_exclusive_sum<kSmallSortThreads>(pairs.ranks.count, total);
    if (thread_index() < kSortDigits) position[thread_index()] = lower_digits;
    block_sync();
    pairs.scatter(position, batch.keys[1 - from] + segment.first,
                  batch.values[1 - from] + segment.first);
    block_sync();   // the next pass reads what other threads have written
  }
}

PUMICE_KERNEL PUMICE_THREADS(kSortThreads) void sort_count_u64(PUMICE_ARGUMENT(SortBatch<uint64_t>)
                                                                   batch) {
  wait_for_previous();
  count_digits(batch);
}
PUMICE_KERNEL PUMICE_THREADS(kSortThreads) void sort_scatter_u64(
    PUMICE_ARGUMENT(SortBatch<uint64_t>) batch) {
  wait_for_previous();
  scatter_by_digit(batch);
}
PUMICE_KERNEL PUMICE_THREADS(kSmallSortThreads) void sort_small_u64(
    PUMICE_ARGUMENT(SortBatch<uint64_t>) batch) {
  wait_for_previous();
  sort_all_passes(batch);
}
PUMICE_KERNEL PUMICE_THREADS(kSortThreads) void sort_count_u32(PUMICE_ARGUMENT(SortBatch<uint32_t>)
                                                                   batch) {
  wait_for_previous();
  count_digits(batch);
}
PUMICE_KERNEL PUMICE_THREADS(kSortThreads) void sort_scatter_u32(
    PUMICE_ARGUMENT(SortBatch<uint32_t>) batch) {
  wait_for_previous();
  scatter_by_digit(batch);
}
PUMICE_KERNEL PUMICE_THREADS(kSmallSortThreads) void sort_small_u32(
    PUMICE_ARGUMENT(SortBatch<uint32_t>) batch) {
  wait_for_previous();
  sort_all_passes(batch);
}

}   // namespace pumice
