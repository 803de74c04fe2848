// What the kernels of the radix sort (pumice/grid/radix_sort.h) are launched with.
#pragma once

#include <pumice/shared/row_count.h>

namespace pumice {

/// Nine bits a pass: a mask of 27 offsets takes three passes, the keys of a scan at 5 cm four.
inline constexpr int kSortDigitBits = 9;
inline constexpr int kSortDigits = 1 << kSortDigitBits;
inline constexpr int kSortThreads = kSortDigits;   // a thread for each digit
inline constexpr int kSortItems = 4;
inline constexpr int kSortTile = kSortThreads * kSortItems;
/// Up to as many pairs of a segment are sorted by one block, in one launch.
inline constexpr int kSmallSortThreads = 1024;
inline constexpr int kSmallSort = kSmallSortThreads * kSortItems;
inline constexpr int kMostSortPasses = 8;
inline constexpr int kMostSortSegments = 32;

/// Pass p sorts by `width` bits from p · width on, the last by what is left of `bits`.
struct SortDigits {
  int32_t passes = 0;
  int32_t width = 0;
  int32_t bits = 0;
};

/// How many keys of a segment have each digit of each pass; null where nobody counts.
struct DigitTotals {
  SortDigits digits{};
  uint32_t* count = nullptr;   // [passes, kSortDigits] zeroed
};

/// Pairs that are sorted among themselves: `rows` from pair `first` of the buffers on.
struct SortSegment {
  RowCountRef rows;
  int64_t first = 0;
  DigitTotals totals{};
  int32_t tiles = 0;             // of the capacity
  uint32_t* states = nullptr;    // [passes, tiles, kSortDigits] zeroed; grid/look_back.h
  uint32_t* tickets = nullptr;   // [passes] zeroed
};

template <class Key> struct SortBatch {
  SortSegment segment[kMostSortSegments];
  int32_t first_block[kMostSortSegments] =
      {};   // blocks of a launch from here on are the segment's
  int32_t segments = 0;
  int32_t pass = 0;         // of a scatter
  int32_t has_values = 0;   // 0: a pair's value is its place in its segment
  Key* keys[2] = {};        // from one to the other and back, pass by pass
  uint32_t* values[2] = {};
};

}   // namespace pumice
