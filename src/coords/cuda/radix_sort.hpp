// The launches of a radix sort on the device.
#pragma once

#include <array>
#include <cstdint>

#include <pumice/grid/sort_arguments.h>
#include <pumice/core/buffer.hpp>

#include "coords/cuda/fill_list.hpp"
#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// Sorts (key, value) pairs ascending by the low `bits` bits of their keys, stably; the other bits
/// must be equal. One launch for a capacity of up to 4,096 pairs; beyond, one and a launch for
/// every 8 bits.
///
///   RadixSort<std::uint64_t> sort(runner, capacity, bits, fill);
///   fill.run(runner);
///   ... a kernel writes sort.keys() ...
///   sort.run(runner, rows);
template <class Key> class RadixSort {
 public:
  /// Takes the memory, and asks `fill` to zero what counts and sums.
  RadixSort(jit::KernelRunner& runner, std::int64_t capacity, int bits, FillList& fill);

  /// What is to be sorted, [capacity].
  Key* keys() { return keys_[0].data(); }
  /// The values that go with it, [capacity]; left alone, values are the places of their keys.
  std::uint32_t* values();

  /// `rows` of the capacity's pairs.
  void run(jit::KernelRunner& runner, RowCountRef rows);

  const Key* sorted_keys() const { return keys_[sorted_in()].data(); }
  const std::uint32_t* sorted_values() const { return values_[sorted_in()].data(); }
  /// The memory of the sorted values, for good.
  Buffer<std::uint32_t> take_sorted_values() { return std::move(values_[sorted_in()]); }
  int passes() const { return digits_.passes; }

 private:
  bool is_small() const { return capacity_ <= kSmallSort; }
  std::size_t sorted_in() const { return static_cast<std::size_t>(digits_.passes % 2); }
  void run_small(jit::KernelRunner& runner, RowCountRef rows);
  void run_passes(jit::KernelRunner& runner, RowCountRef rows);

  std::int64_t capacity_;
  std::int64_t tiles_;
  SortDigits digits_;
  std::array<Buffer<Key>, 2> keys_;
  std::array<Buffer<std::uint32_t>, 2> values_;
  bool has_values_ = false;
  Buffer<std::uint32_t> totals_;    // [passes, 256]
  Buffer<std::uint32_t> states_;    // [passes, tiles, 256]
  Buffer<std::uint32_t> tickets_;   // [passes]
};

}   // namespace pumice::cuda
