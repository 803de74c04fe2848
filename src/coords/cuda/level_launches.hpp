// The launches that make one set, or a pyramid of sets, of sorted keys.
#pragma once

#include <span>

#include <pumice/coords/level_arguments.h>

#include "coords/cuda/device_set.hpp"
#include "coords/cuda/fill_list.hpp"
#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// Sorted keys, and what is to be known about where they came from.
struct SortedElements {
  RowCountRef count{};
  const std::uint64_t* keys = nullptr;
  const std::uint32_t* values = nullptr;   // null: each came from its own place
  std::int32_t* order = nullptr;           // null where nobody asks, as the next
  std::int32_t* row_of = nullptr;
  std::int64_t* begin = nullptr;
  RowTrouble* outside = nullptr;    // noted by whoever made the keys; null: all have one
  RowTrouble* repeated = nullptr;   // zeroed; null: elements may repeat
  std::int32_t site = 0;
};

/// What the tiles of sorted elements look back at, which `fill` zeroes; for one use.
class LevelSums {
 public:
  /// Room for `capacity` elements.
  LevelSums(jit::KernelRunner& runner, std::int64_t capacity, FillList& fill);
  std::int64_t tiles() const { return (words_.size() - 1) / kLevelCounters; }
  std::uint32_t* states() { return words_.data(); }
  std::uint32_t* ticket() { return words_.data() + words_.size() - 1; }

 private:
  Buffer<std::uint32_t> words_;
};

/// Two launches, however many levels there are up to 8: cells, blocks. Set i becomes the distinct
/// values of the keys >> shift[i], shifts ascending. Tables are empty before.
void make_levels(jit::KernelRunner& runner, const SortedElements& elements, LevelSums& sums,
                 std::span<DeviceSet* const> sets, std::span<const int> shifts);

/// The keys of one level and how many there are.
struct LevelKeys {
  Buffer<std::uint64_t> keys;
  Buffer<std::int64_t> count;

  RowCountRef count_ref() const { return {count.data(), keys.size()}; }
};

/// The distinct keys >> `shift`, of `layout`, that lie in `box`. One launch.
LevelKeys make_keys_in_box(jit::KernelRunner& runner, const SortedElements& elements,
                           LevelSums& sums, int shift, const KeyLayout& layout, const KeyBox& box,
                           std::int64_t capacity, const std::string& name);

}   // namespace pumice::cuda
