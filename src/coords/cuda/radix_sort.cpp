// How many passes, and which kernels each takes.
#include "coords/cuda/radix_sort.hpp"

#include <algorithm>

#include <pumice/grid/look_back.h>
#include <pumice/core/error.hpp>

#include "coords/cuda/sources.hpp"

namespace pumice::cuda {
namespace {

SortDigits digits_of(int bits) {
  SortDigits digits;
  digits.bits = std::max(bits, 1);
  const int passes = (digits.bits + kDigitBits - 1) / kDigitBits;
  digits.width = (digits.bits + passes - 1) / passes;
  digits.passes = (digits.bits + digits.width - 1) / digits.width;
  return digits;
}

}   // namespace

template <class Key>
RadixSort<Key>::RadixSort(jit::KernelRunner& runner, std::int64_t capacity, int bits,
                          FillList& fill)
    : capacity_(capacity),
      tiles_((capacity + kSortTile - 1) / kSortTile),
      digits_(digits_of(bits)) {
  PUMICE_ENSURES(bits <= static_cast<int>(8 * sizeof(Key)), bits, " bits of a key of ", sizeof(Key),
                 " bytes");
  PUMICE_EXPECTS(capacity <= kMostTileSum, "a sort of ", capacity, " pairs; the most is ",
                 kMostTileSum);
  for (std::size_t i = 0; i < 2; ++i) {
    keys_[i] = runner.make<Key>(capacity);
    values_[i] = runner.make<std::uint32_t>(capacity);
  }
  if (is_small()) return;
  totals_ = runner.make<std::uint32_t>(digits_.passes * kDigits);
  states_ = runner.make<std::uint32_t>(digits_.passes * tiles_ * kDigits);
  tickets_ = runner.make<std::uint32_t>(digits_.passes);
  fill.add(totals_, 0);
  fill.add(states_, 0);
  fill.add(tickets_, 0);
}

template <class Key> std::uint32_t* RadixSort<Key>::values() {
  has_values_ = true;
  return values_[0].data();
}

template <class Key> void RadixSort<Key>::run(jit::KernelRunner& runner, RowCountRef rows) {
  if (is_small()) {
    run_small(runner, rows);
  } else {
    run_passes(runner, rows);
  }
}

template <class Key> void RadixSort<Key>::run_small(jit::KernelRunner& runner, RowCountRef rows) {
  SmallSort<Key> arguments{.rows = rows, .has_values = has_values_ ? 1 : 0, .digits = digits_};
  for (std::size_t i = 0; i < 2; ++i) {
    arguments.keys[i] = keys_[i].data();
    arguments.values[i] = values_[i].data();
  }
  runner.run(coords_kernel(sizeof(Key) == 8 ? "sort_small_u64" : "sort_small_u32"),
             {.blocks = 1, .threads = kSmallSortThreads}, arguments);
}

template <class Key> void RadixSort<Key>::run_passes(jit::KernelRunner& runner, RowCountRef rows) {
  constexpr bool kIsWide = sizeof(Key) == 8;
  runner.run(
      coords_kernel(kIsWide ? "sort_count_u64" : "sort_count_u32"),
      {.blocks = (capacity_ + kSortCountTile - 1) / kSortCountTile, .threads = kSortThreads},
      SortCount<Key>{
          .rows = rows, .keys = keys_[0].data(), .totals = totals_.data(), .digits = digits_});
  for (int pass = 0; pass < digits_.passes; ++pass) {
    const auto from = static_cast<std::size_t>(pass % 2);
    const int shift = pass * digits_.width;
    runner.run(coords_kernel(kIsWide ? "sort_scatter_u64" : "sort_scatter_u32"),
               {.blocks = tiles_, .threads = kSortThreads},
               SortPass<Key>{.rows = rows,
                             .keys = keys_[from].data(),
                             .values = pass > 0 || has_values_ ? values_[from].data() : nullptr,
                             .sorted_keys = keys_[1 - from].data(),
                             .sorted_values = values_[1 - from].data(),
                             .totals = totals_.data() + pass * kDigits,
                             .states = states_.data() + pass * tiles_ * kDigits,
                             .ticket = tickets_.data() + pass,
                             .shift = shift,
                             .bits = std::min(digits_.width, digits_.bits - shift)});
  }
}

template class RadixSort<std::uint32_t>;
template class RadixSort<std::uint64_t>;

}   // namespace pumice::cuda
