// What the kernels of the radix sort (pumice/grid/radix_sort.h) are launched with.
#pragma once

#include <pumice/block/digits.h>
#include <pumice/shared/row_count.h>

namespace pumice {

inline constexpr int kSortThreads = 512;
inline constexpr int kSortItems = 4;
inline constexpr int kSpineThreads = 1024;
inline constexpr int kSpineBlocks = 8;   // each has 32 digits
inline constexpr int kSortTile = kSortThreads * kSortItems;
/// Up to as many tiles each block adds up the histograms before its own; beyond, a launch of
/// `sort_spine` does it for all.
inline constexpr int kMostSelfSummedTiles = 256;

/// One pass of a sort over `bits` bits from `shift` on.
template <class Key> struct SortPass {
  RowCountRef rows;
  const Key* keys = nullptr;
  const uint32_t* values = nullptr;   // null: an element's value is its number
  Key* sorted_keys = nullptr;
  uint32_t* sorted_values = nullptr;
  uint32_t* histogram = nullptr;        // [tiles of the capacity, 256]
  const uint32_t* before = nullptr;     // as large, from the spine; null: blocks sum up themselves
  const uint32_t* totals = nullptr;     // [256] from the spine
  uint32_t* next_histogram = nullptr;   // zeroed; null: nobody wants it counted
  int32_t shift = 0;
  int32_t bits = 8;
  int32_t next_shift = 0;
  int32_t next_bits = 8;
};

/// What `sort_spine` sums histograms up with.
struct SortSpine {
  RowCountRef rows;
  const uint32_t* histogram = nullptr;
  uint32_t* before = nullptr;   // [tiles, 256]
  uint32_t* totals = nullptr;   // [256]
};

/// Where the first pass of a sort counts the keys it is going to get.
struct FirstHistogram {
  uint32_t* histogram = nullptr;   // [tiles, 256], zeroed
  int32_t shift = 0;
  int32_t bits = 0;
};

}   // namespace pumice
