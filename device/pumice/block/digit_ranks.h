// Where each element of a block goes when the block is sorted by a digit, stably: the one
// step that radix sorts and counting sorts are made of.
//
//   element of warp w, item r, lane l:   number (w * kItems + r) * 32 + l
//
//   a warp, item by item                      the block
//   lanes with my digit: match_any            counts[w][digit], summed over the warps before w
//   rank = seen[digit] + those below me       ─▶ base of warp w for each digit
//   seen[digit] += how many of us
#pragma once

#include <pumice/platform.h>

namespace pumice {

/// Elements [first, first + kItems * 32) of a tile belong to the calling warp.
template <int kItems> PUMICE_DEVICE int64_t warp_first_element(int64_t tile_first) {
  return tile_first + int64_t{warp_index()} * kItems * kWarpThreads;
}

template <int kThreads, int kItems, int kDigits> struct DigitRanks {
  static constexpr uint32_t kNoDigit = kDigits;   // of an element past the end
  static constexpr int kWarps = kThreads / kWarpThreads;
  static_assert(kThreads >= kDigits, "a thread for each digit");
  static_assert(kThreads * kItems < 65536, "counts of a warp and before it fit 16 bits");
  using Counts = Array<Array<uint16_t, kDigits>, kWarps>;

  Array<uint32_t, kItems> rank;   // of this thread's elements among the block's with their digit
  uint32_t count;                 // elements of the block whose digit is this thread's number

  /// `digit` of the elements of this thread, kNoDigit for those past the end. Every thread calls.
  PUMICE_DEVICE void find(const Array<uint32_t, kItems>& digit) {
    PUMICE_BLOCK_SHARED(Counts, counts);
    block_sync();
    for (int i = thread_index(); i < kWarps * kDigits; i += kThreads)
      counts[i / kDigits][i % kDigits] = 0;
    block_sync();
    uint16_t* const seen = counts[warp_index()];
    PUMICE_UNROLL
    for (int item = 0; item < kItems; ++item) {
      const uint32_t mine = digit[item];
      const uint32_t peers = warp_match_any(mine);
      const uint32_t below = static_cast<uint32_t>(popcount(peers & lanes_below()));
      const uint32_t before = mine == kNoDigit ? 0 : seen[mine];
      warp_sync();
      if (mine != kNoDigit && below == 0) {
        seen[mine] = static_cast<uint16_t>(before + static_cast<uint32_t>(popcount(peers)));
      }
      warp_sync();
      rank[item] = before + below;
    }
    block_sync();
    count = 0;
    if (thread_index() < kDigits) {
      PUMICE_UNROLL
      for (int warp = 0; warp < kWarps; ++warp) {
        const uint32_t here = counts[warp][thread_index()];
        counts[warp][thread_index()] = static_cast<uint16_t>(count);
        count += here;
      }
    }
    block_sync();
    PUMICE_UNROLL
    for (int item = 0; item < kItems; ++item) {
      if (digit[item] != kNoDigit) rank[item] += counts[warp_index()][digit[item]];
    }
  }
};

}   // namespace pumice
