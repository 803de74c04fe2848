// The launches of a radix sort on the device.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <pumice/grid/sort_arguments.h>
#include <pumice/core/buffer.hpp>

#include "coords/cuda/fill_list.hpp"
#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// Room for pairs that are sorted among themselves, by the low `bits` bits of their keys.
struct SortRoom {
  std::int64_t capacity = 0;
  int bits = 0;
};

/// Words that a sort wants zeroed for a segment, at the most.
std::int64_t sort_sum_words(const SortRoom& room);

/// Sorts (key, value) pairs ascending by the low `bits` bits of their keys, stably; the other bits
/// must be equal. Several segments are sorted side by side, each by itself. One launch where no
/// segment has room for more than 4,096 pairs; elsewhere a launch for every 9 bits, and one before
/// them that counts digits where the caller does not.
///
///   RadixSort<std::uint64_t> sort(runner, {{capacity, bits}}, fill);
///   fill.run(runner);
///   ... a kernel writes sort.keys() ...
///   sort.run(runner, {rows});
template <class Key> class RadixSort {
 public:
  /// Takes the memory, and asks `fill` to zero what counts and sums. 1 to kMostSortSegments rooms.
  RadixSort(jit::KernelRunner& runner, std::span<const SortRoom> rooms, FillList& fill);
  RadixSort(jit::KernelRunner& runner, SortRoom room, FillList& fill)
      : RadixSort(runner, std::span(&room, 1), fill) {}

  /// What is to be sorted, [capacity].
  Key* keys(std::size_t segment = 0) { return keys_[0].data() + batch_.segment[segment].first; }
  /// The values that go with it, [capacity] for each segment; left alone, values are the places of
  /// their keys in their segment.
  std::uint32_t* values();
  /// For a kernel that writes the keys of a segment and counts their digits on the way
  /// (grid/digit_counts.h); then the kernels of all segments do. Null where one launch sorts all.
  DigitTotals counted_by_caller(std::size_t segment = 0);

  /// `rows` of each segment's capacity.
  void run(jit::KernelRunner& runner, std::span<const RowCountRef> rows);
  void run(jit::KernelRunner& runner, RowCountRef rows) { run(runner, std::span(&rows, 1)); }

  const Key* sorted_keys(std::size_t segment = 0) const {
    return keys_[sorted_in(segment)].data() + batch_.segment[segment].first;
  }
  const std::uint32_t* sorted_values(std::size_t segment = 0) const {
    return values_[sorted_in(segment)].data() + batch_.segment[segment].first;
  }
  /// The memory of the sorted values of the only segment, for good.
  Buffer<std::uint32_t> take_sorted_values() { return std::move(values_[sorted_in(0)]); }
  /// The memory in which the sorted values of all segments are, for good.
  std::array<Buffer<std::uint32_t>, 2> take_all_sorted_values() {
    std::array<Buffer<std::uint32_t>, 2> taken;
    for (std::size_t segment = 0; segment < segments().size(); ++segment) {
      const std::size_t at = sorted_in(segment);
      if (taken[at].data() == nullptr) taken[at] = std::move(values_[at]);
    }
    return taken;
  }

 private:
  std::span<SortSegment> segments() {
    return {batch_.segment, static_cast<std::size_t>(batch_.segments)};
  }
  std::size_t sorted_in(std::size_t segment) const {
    return static_cast<std::size_t>(batch_.segment[segment].totals.digits.passes % 2);
  }
  void take_sums(jit::KernelRunner& runner, FillList& fill);
  /// A launch of a block a tile, for the segments that have more than `pass` passes.
  void launch(jit::KernelRunner& runner, const char* kernel, int pass);

  SortBatch<Key> batch_{};
  int passes_ = 0;   // the most of a segment
  bool is_small_ = true;
  bool is_counted_ = false;   // by whoever writes the keys
  std::array<Buffer<Key>, 2> keys_;
  std::array<Buffer<std::uint32_t>, 2> values_;
  Buffer<std::uint32_t> sums_;   // totals, states and tickets of all segments
};

}   // namespace pumice::cuda
