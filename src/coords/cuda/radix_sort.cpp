// How many passes, and which kernels each takes.
#include "coords/cuda/radix_sort.hpp"

#include <algorithm>

#include <pumice/core/error.hpp>

#include "coords/cuda/sources.hpp"

namespace pumice::cuda {
template <class Key>
RadixSort<Key>::RadixSort(jit::KernelRunner& runner, std::int64_t capacity, int bits,
                          FillList& fill)
    : capacity_(capacity),
      tiles_((capacity + kSortTile - 1) / kSortTile),
      bits_(std::max(bits, 1)),
      passes_((bits_ + kDigitBits - 1) / kDigitBits),
      width_((bits_ + passes_ - 1) / passes_) {
  PUMICE_ENSURES(bits <= static_cast<int>(8 * sizeof(Key)), bits, " bits of a key of ", sizeof(Key),
                 " bytes");
  PUMICE_ENSURES(capacity <= (std::int64_t{1} << 31) - 1, "a sort of ", capacity, " pairs");
  passes_ = (bits_ + width_ - 1) / width_;
  for (std::size_t i = 0; i < 2; ++i) {
    keys_[i] = runner.make<Key>(capacity);
    values_[i] = runner.make<std::uint32_t>(capacity);
  }
  histograms_ = runner.make<std::uint32_t>(passes_ * tiles_ * kDigits);
  fill.add(histograms_, 0);
  if (tiles_ > kMostSelfSummedTiles) spine_ = runner.make<std::uint32_t>((1 + tiles_) * kDigits);
}

template <class Key> std::uint32_t* RadixSort<Key>::values() {
  has_values_ = true;
  return values_[0].data();
}

template <class Key> FirstHistogram RadixSort<Key>::first_histogram() {
  return {histogram(0), shift(0), bits(0)};
}

template <class Key>
void RadixSort<Key>::run(jit::KernelRunner& runner, RowCountRef rows, bool counts) {
  constexpr bool kIsWide = sizeof(Key) == 8;
  const auto count = coords_kernel(kIsWide ? "sort_count_u64" : "sort_count_u32");
  const auto scatter = coords_kernel(kIsWide ? "sort_scatter_u64" : "sort_scatter_u32");
  const jit::LaunchShape tile_each{.blocks = tiles_, .threads = kSortThreads};
  for (int pass = 0; pass < passes_; ++pass) {
    const auto from = static_cast<std::size_t>(pass % 2);
    const bool last = pass + 1 == passes_;
    SortPass<Key> arguments{.rows = rows,
                            .keys = keys_[from].data(),
                            .values = pass > 0 || has_values_ ? values_[from].data() : nullptr,
                            .sorted_keys = keys_[1 - from].data(),
                            .sorted_values = values_[1 - from].data(),
                            .histogram = histogram(pass),
                            .shift = shift(pass),
                            .bits = bits(pass)};
    if (!last) {
      arguments.next_histogram = histogram(pass + 1);
      arguments.next_shift = shift(pass + 1);
      arguments.next_bits = bits(pass + 1);
    }
    if (pass == 0 && counts) runner.run(count, tile_each, arguments);
    if (spine_.size() > 0) {
      arguments.totals = spine_.data();
      arguments.before = spine_.data() + kDigits;
      runner.run(coords_kernel("sort_spine"), {.blocks = kSpineBlocks, .threads = kSpineThreads},
                 SortSpine{rows, arguments.histogram, spine_.data() + kDigits, spine_.data()});
    }
    runner.run(scatter, tile_each, arguments);
  }
  sorted_in_ = static_cast<std::size_t>(passes_ % 2);
}

template class RadixSort<std::uint32_t>;
template class RadixSort<std::uint64_t>;

}   // namespace pumice::cuda
