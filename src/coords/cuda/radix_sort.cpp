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
  const int passes = (digits.bits + kSortDigitBits - 1) / kSortDigitBits;
  digits.width = (digits.bits + passes - 1) / passes;
  digits.passes = (digits.bits + digits.width - 1) / digits.width;
  return digits;
}

std::int32_t tiles_for(std::int64_t capacity) {
  return static_cast<std::int32_t>((capacity + kSortTile - 1) / kSortTile);
}

/// Totals, states and tickets of a segment.
std::int64_t sum_words(const SortDigits& digits, std::int32_t tiles) {
  return std::int64_t{digits.passes} * (1 + kSortDigits * (1 + std::int64_t{tiles}));
}

}   // namespace

std::int64_t sort_sum_words(const SortRoom& room) {
  return sum_words(digits_of(room.bits), tiles_for(room.capacity));
}

template <class Key>
RadixSort<Key>::RadixSort(jit::KernelRunner& runner, std::span<const SortRoom> rooms,
                          FillList& fill) {
  PUMICE_ENSURES(!rooms.empty() && rooms.size() <= kMostSortSegments, rooms.size(),
                 " segments of a sort");
  std::int64_t pairs = 0;
  for (const auto& [capacity, bits] : rooms) {
    PUMICE_ENSURES(bits <= static_cast<int>(8 * sizeof(Key)), bits, " bits of a key of ",
                   sizeof(Key), " bytes");
    PUMICE_EXPECTS(capacity <= kMostTileSum, "a sort of ", capacity,
                   " rows; on a device the most is ", kMostTileSum,
                   ", so take fewer points or a smaller batch");
    SortSegment& segment = batch_.segment[batch_.segments++];
    segment.first = pairs;
    segment.totals.digits = digits_of(bits);
    segment.tiles = tiles_for(capacity);
    passes_ = std::max(passes_, segment.totals.digits.passes);
    is_small_ = is_small_ && capacity <= kSmallSort;
    pairs += capacity;
  }
  for (std::size_t i = 0; i < 2; ++i) {
    keys_[i] = runner.make<Key>(pairs);
    values_[i] = runner.make<std::uint32_t>(pairs);
    batch_.keys[i] = keys_[i].data();
    batch_.values[i] = values_[i].data();
  }
  if (!is_small_) take_sums(runner, fill);
}

template <class Key> void RadixSort<Key>::take_sums(jit::KernelRunner& runner, FillList& fill) {
  const auto words = [](const SortSegment& segment) {
    return sum_words(segment.totals.digits, segment.tiles);
  };
  std::int64_t all = 0;
  for (const SortSegment& segment : segments())
    all += words(segment);
  sums_ = fill.zeros<std::uint32_t>(runner, all);
  std::uint32_t* next = sums_.data();
  for (SortSegment& segment : segments()) {
    const std::int32_t passes = segment.totals.digits.passes;
    segment.totals.count = next;
    segment.states = next + passes * kSortDigits;
    next += words(segment);
    segment.tickets = next - passes;
  }
}

template <class Key> std::uint32_t* RadixSort<Key>::values() {
  batch_.has_values = 1;
  return values_[0].data();
}

template <class Key> DigitTotals RadixSort<Key>::counted_by_caller(std::size_t segment) {
  is_counted_ = true;
  return batch_.segment[segment].totals;
}

template <class Key>
void RadixSort<Key>::run(jit::KernelRunner& runner, std::span<const RowCountRef> rows) {
  constexpr bool kIsWide = sizeof(Key) == 8;
  PUMICE_ENSURES(rows.size() == segments().size(), rows.size(), " counts for ", batch_.segments,
                 " segments");
  for (std::size_t i = 0; i < rows.size(); ++i)
    batch_.segment[i].rows = rows[i];
  if (is_small_) {
    runner.run(coords_kernel(kIsWide ? "sort_small_u64" : "sort_small_u32"),
               {.blocks = batch_.segments, .threads = kSmallSortThreads}, batch_);
    return;
  }
  if (!is_counted_) launch(runner, kIsWide ? "sort_count_u64" : "sort_count_u32", 0);
  for (int pass = 0; pass < passes_; ++pass)
    launch(runner, kIsWide ? "sort_scatter_u64" : "sort_scatter_u32", pass);
}

template <class Key>
void RadixSort<Key>::launch(jit::KernelRunner& runner, const char* kernel, int pass) {
  std::int32_t blocks = 0;
  for (std::size_t i = 0; i < segments().size(); ++i) {
    batch_.first_block[i] = blocks;
    if (segments()[i].totals.digits.passes > pass) blocks += segments()[i].tiles;
  }
  batch_.pass = pass;
  runner.run(coords_kernel(kernel), {.blocks = blocks, .threads = kSortThreads}, batch_);
}

template class RadixSort<std::uint32_t>;
template class RadixSort<std::uint64_t>;

}   // namespace pumice::cuda
