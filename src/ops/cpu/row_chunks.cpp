// The cut of rows into chunks.
#include "ops/cpu/row_chunks.hpp"

#include <algorithm>

namespace pumice::cpu {

RowChunks::RowChunks(std::int64_t rows, std::int64_t channels) : item_begin_{0, rows} {
  cut(channels);
}

RowChunks::RowChunks(const CoordinateSet& set, std::int64_t channels) {
  const Buffer<std::int32_t> batch = batch_of_rows(set);
  const auto items = static_cast<std::int64_t>(set.batch_size());
  groups_ = group_rows(std::span<const std::int32_t>(batch.span()), items);
  item_begin_.assign(groups_.begin.span().begin(), groups_.begin.span().end());
  if (std::is_sorted(batch.span().begin(), batch.span().end())) groups_ = {};
  cut(channels);
}

void RowChunks::cut(std::int64_t channels) {
  // 64 Ki elements a chunk: 256 KiB of f32, so that partial sums are a small share of what is read.
  const std::int64_t step =
      std::max<std::int64_t>(64, (1 << 16) / std::max<std::int64_t>(1, channels));
  for (std::int64_t item = 0; item < items(); ++item) {
    const std::int64_t end = item_begin_[static_cast<std::size_t>(item) + 1];
    for (std::int64_t p = item_begin_[static_cast<std::size_t>(item)]; p < end; p += step) {
      chunks_.push_back({item, p, std::min(end, p + step)});
    }
  }
}

Buffer<std::int32_t> batch_of_rows(const CoordinateSet& set) {
  const std::int64_t width = set.dimension() + 1;
  Buffer<std::int32_t> batch(set.size());
  const auto* coordinates = set.coordinates().data<std::int32_t>();
  parallel_for(set.size(), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      batch[row] = coordinates[row * width];
  });
  return batch;
}

}   // namespace pumice::cpu
