// The launches of a radix sort on the device.
#pragma once

#include <array>
#include <cstdint>

#include <pumice/coords/encode_arguments.h>
#include <pumice/grid/sort_arguments.h>
#include <pumice/core/buffer.hpp>

#include "coords/cuda/fill_list.hpp"
#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// Sorts (key, value) pairs ascending by the low `bits` bits of their keys, stably; the other bits
/// must be equal. A pass of at most 8 bits is one launch, two beyond 524,288 pairs of capacity.
///
///   RadixSort<std::uint64_t> sort(runner, capacity, bits, fill);
///   fill.run(runner);
///   ... a kernel writes sort.keys() and counts them in sort.first_histogram() ...
///   sort.run(runner, rows);
template <class Key> class RadixSort {
 public:
  /// Takes the memory, and asks `fill` to zero the histograms.
  RadixSort(jit::KernelRunner& runner, std::int64_t capacity, int bits, FillList& fill);

  /// What is to be sorted, [capacity].
  Key* keys() { return keys_[0].data(); }
  /// The values that go with it, [capacity]; left alone, values are the places of their keys.
  std::uint32_t* values();
  FirstHistogram first_histogram();

  /// `rows` of the capacity's pairs. With `counts` the first pass counts its keys itself, which is
  /// one launch more.
  void run(jit::KernelRunner& runner, RowCountRef rows, bool counts = false);

  const Key* sorted_keys() const { return keys_[sorted_in_].data(); }
  const std::uint32_t* sorted_values() const { return values_[sorted_in_].data(); }
  /// The memory of the sorted values, for good.
  Buffer<std::uint32_t> take_sorted_values() { return std::move(values_[sorted_in_]); }
  int passes() const { return passes_; }

 private:
  std::int32_t shift(int pass) const { return pass * width_; }
  std::uint32_t* histogram(int pass) { return histograms_.data() + pass * tiles_ * kDigits; }
  std::int32_t bits(int pass) const { return std::min(width_, bits_ - shift(pass)); }

  std::int64_t capacity_;
  std::int64_t tiles_;
  int bits_;
  int passes_;
  int width_;   // bits a pass
  std::array<Buffer<Key>, 2> keys_;
  std::array<Buffer<std::uint32_t>, 2> values_;
  bool has_values_ = false;
  Buffer<std::uint32_t> histograms_;   // [passes, tiles, 256]
  Buffer<std::uint32_t> spine_;        // [1 + tiles, 256]: totals, then what is before each tile
  std::size_t sorted_in_ = 0;
};

}   // namespace pumice::cuda
