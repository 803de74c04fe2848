// Rows cut into chunks, none of which crosses a batch item: partial results are kept per chunk and
// combined in chunk order, so their bits depend on the shape alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/core/parallel.hpp>

#include "core/row_groups.hpp"
#include "ops/cpu/widened.hpp"

namespace pumice::cpu {

struct RowChunk {
  std::int64_t item;
  std::int64_t begin;   // positions
  std::int64_t end;
};

class RowChunks {
 public:
  /// All rows are one item.
  RowChunks(std::int64_t rows, std::int64_t channels);
  /// An item for each batch item of `set`.
  RowChunks(const CoordinateSet& set, std::int64_t channels);

  std::int64_t items() const { return static_cast<std::int64_t>(item_begin_.size()) - 1; }
  std::int64_t rows_of(std::int64_t item) const {
    return item_begin_[static_cast<std::size_t>(item) + 1] -
           item_begin_[static_cast<std::size_t>(item)];
  }
  std::span<const RowChunk> chunks() const { return chunks_; }
  /// Whether positions are rows, so that a chunk is a contiguous piece of the array.
  bool contiguous() const { return groups_.position.size() == 0; }
  std::int64_t row(std::int64_t position) const {
    return contiguous() ? position : groups_.position[position];
  }

 private:
  void cut(std::int64_t channels);
  std::vector<std::int64_t> item_begin_;   // positions
  std::vector<RowChunk> chunks_;
  RowGroups groups_;
};

/// The batch index of every row, i32.
Buffer<std::int32_t> batch_of_rows(const CoordinateSet& set);

/// Elements that loops over channels take at once: a whole number of rows, so that narrow rows fill
/// vectors too.
inline std::int64_t period_of(std::int64_t channels) {
  constexpr std::int64_t kWide = 64;
  return channels >= kWide ? channels : kWide / std::max<std::int64_t>(1, channels) * channels;
}

/// Σ over the rows of each item of several terms. body(sums, item, inputs…, n) adds the terms of n
/// elements, which are columns 0, 1, …, C-1, 0, … of consecutive rows: term t of element i goes to
/// sums[t][i]. Returns [items, Terms, C] in double.
template <std::size_t Terms, class Body, class... Inputs>
std::vector<double> column_sums(const RowChunks& rows, std::int64_t channels, const Body& body,
                                const Inputs*... inputs) {
  constexpr auto kTerms = static_cast<std::int64_t>(Terms);
  const std::int64_t period = period_of(channels);
  const auto chunks = static_cast<std::int64_t>(rows.chunks().size());
  Buffer<double> partial(chunks * kTerms * channels);
  parallel_for(chunks, 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<double> lanes(static_cast<std::size_t>(kTerms * period));
    std::vector<compute_t<std::common_type_t<Inputs...>>> scratch(static_cast<std::size_t>(period) *
                                                                  sizeof...(Inputs));
    for (std::int64_t c = first; c < last; ++c) {
      const RowChunk& chunk = rows.chunks()[static_cast<std::size_t>(c)];
      std::fill(lanes.begin(), lanes.end(), 0.0);
      std::array<double*, Terms> sums{};
      for (std::size_t t = 0; t < Terms; ++t) {
        sums[t] = lanes.data() + static_cast<std::int64_t>(t) * period;
      }
      const auto add = [&](std::int64_t offset, std::int64_t n) {
        with_widened(
            scratch.data(), period, n, [&](auto... wide) { body(sums, chunk.item, wide...); },
            (inputs + offset)...);
      };
      if (rows.contiguous()) {
        const std::int64_t end = chunk.end * channels;
        for (std::int64_t i = chunk.begin * channels; i < end; i += period) {
          add(i, std::min(period, end - i));
        }
      } else {
        for (std::int64_t p = chunk.begin; p < chunk.end; ++p)
          add(rows.row(p) * channels, channels);
      }
      for (std::int64_t t = 0; t < kTerms; ++t) {
        double* out = partial.data() + (c * kTerms + t) * channels;
        for (std::int64_t i = 0; i < channels; ++i) {
          double sum = 0;
          for (std::int64_t lane = i; lane < period; lane += channels) {
            sum += lanes[static_cast<std::size_t>(t * period + lane)];
          }
          out[i] = sum;
        }
      }
    }
  });
  std::vector<double> total(static_cast<std::size_t>(rows.items() * kTerms * channels), 0.0);
  for (std::int64_t c = 0; c < chunks; ++c) {
    const std::int64_t item = rows.chunks()[static_cast<std::size_t>(c)].item;
    double* to = total.data() + item * kTerms * channels;
    const double* from = partial.data() + c * kTerms * channels;
    for (std::int64_t i = 0; i < kTerms * channels; ++i)
      to[i] += from[i];
  }
  return total;
}

}   // namespace pumice::cpu
