// What the kernels of the radix sort (pumice/grid/radix_sort.h) are launched with.
#pragma once

#include <pumice/block/digits.h>
#include <pumice/shared/row_count.h>

namespace pumice {

inline constexpr int kSortThreads = 256;
inline constexpr int kSortItems = 4;
inline constexpr int kSortTile = kSortThreads * kSortItems;
inline constexpr int kSortCountItems = 8;
inline constexpr int kSortCountTile = kSortThreads * kSortCountItems;
/// Up to as many pairs are sorted by one block, in one launch.
inline constexpr int kSmallSortThreads = 1024;
inline constexpr int kSmallSort = kSmallSortThreads * kSortItems;
inline constexpr int kMostSortPasses = 8;

/// Pass p sorts by `width` bits from p · width on, the last by what is left of `bits`.
struct SortDigits {
  int32_t passes = 0;
  int32_t width = 0;
  int32_t bits = 0;
};

/// What `sort_count` counts the digits of all passes with.
template <class Key> struct SortCount {
  RowCountRef rows;
  const Key* keys = nullptr;
  uint32_t* totals = nullptr;   // [passes, 256] zeroed
  SortDigits digits{};
};

/// One pass of a sort over `bits` bits from `shift` on.
template <class Key> struct SortPass {
  RowCountRef rows;
  const Key* keys = nullptr;
  const uint32_t* values = nullptr;   // null: an element's value is its number
  Key* sorted_keys = nullptr;
  uint32_t* sorted_values = nullptr;
  const uint32_t* totals = nullptr;   // [256] how many keys have each digit
  uint32_t* states = nullptr;         // [tiles of the capacity, 256] zeroed; grid/look_back.h
  uint32_t* ticket = nullptr;         // zeroed
  int32_t shift = 0;
  int32_t bits = 8;
};

/// A sort of up to kSmallSort pairs, from one pair of buffers to the other and back.
template <class Key> struct SmallSort {
  RowCountRef rows;
  Key* keys[2] = {};
  uint32_t* values[2] = {};
  int32_t has_values = 0;
  SortDigits digits{};
};

}   // namespace pumice
