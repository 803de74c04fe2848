// Union, pruning and other orders of coordinate sets.
#include <pumice/coords/set_operations.hpp>

#include <algorithm>
#include <limits>

#include <pumice/core/parallel.hpp>
#include <pumice/core/radix_sort.hpp>

#include "coords/cpu/compact.hpp"
#include "coords/cpu/coordinate_set_builder.hpp"
#include "coords/cpu/key_list.hpp"
#include "coords/cpu/key_runs.hpp"
#include "coords/cuda/derived_sets.hpp"

namespace pumice {
namespace {

constexpr std::int64_t kChunk = std::int64_t{1} << 14;

/// Where both have a shape they must agree; where one has none, neither has the union.
std::optional<Axes> common_shape(const CoordinateSet& left, const CoordinateSet& right) {
  if (!left.spatial_shape() || !right.spatial_shape()) return std::nullopt;
  for (int axis = 0; axis < left.dimension(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    PUMICE_EXPECTS((*left.spatial_shape())[at] == (*right.spatial_shape())[at], "spatial_shape[",
                   axis, "] is ", (*left.spatial_shape())[at], " on the left, ",
                   (*right.spatial_shape())[at], " on the right; unite sets of one grid");
  }
  return left.spatial_shape();
}

KeyLayout common_layout(const CoordinateSet& left, const CoordinateSet& right,
                        std::int32_t batch_size) {
  if (left.layout() == right.layout() || right.size() == 0) return left.layout();
  if (left.size() == 0) return right.layout();
  Bounds bounds = bounds_of(left.coordinates());
  const Bounds others = bounds_of(right.coordinates());
  for (std::size_t at = 0; at < kMaxDimension; ++at) {
    bounds.low[at] = std::min(bounds.low[at], others.low[at]);
    bounds.high[at] = std::max(bounds.high[at], others.high[at]);
  }
  return roomy_layout(left.dimension(), bounds, batch_size);
}

/// Copies the keys of `set` in `layout` to `keys`, and to `elements` the rows they belong to plus
/// `first_element`.
void append_keys(const CoordinateSet& set, const KeyLayout& layout, std::int64_t first_element,
                 std::uint64_t* keys, std::int32_t* elements) {
  const Buffer<std::uint64_t> mine = keys_in_layout(set, layout);
  const std::int32_t* order = set.index().order;
  parallel_for(set.size(), kChunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t rank = begin; rank < end; ++rank) {
      keys[rank] = mine[rank];
      const std::int64_t row = order == nullptr ? rank : order[rank];
      elements[rank] = static_cast<std::int32_t>(first_element + row);
    }
  });
}

Tensor slice(const Tensor& values, std::int64_t first, std::int64_t size) {
  return Tensor::from(values.span<std::int32_t>().subspan(static_cast<std::size_t>(first),
                                                          static_cast<std::size_t>(size)),
                      Shape{size});
}

}   // namespace

UnionSet unite(const CoordinateSet& left, const CoordinateSet& right) {
  PUMICE_EXPECTS(left.dimension() == right.dimension(), "dimension ", left.dimension(),
                 " on the left, ", right.dimension(), " on the right; unite sets of one grid");
  for (int axis = 0; axis < left.dimension(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    PUMICE_EXPECTS(left.stride()[at] == right.stride()[at], "stride[", axis, "] is ",
                   left.stride()[at], " on the left, ", right.stride()[at],
                   " on the right; unite sets of one level");
  }
  const std::int64_t elements = left.size() + right.size();
  PUMICE_EXPECTS(elements <= std::numeric_limits<std::int32_t>::max(), "sets of ", left.size(),
                 " and ", right.size(), " rows; their union may hold at most 2147483647");
  CoordinateOptions options = left.options();
  options.bounds.reset();
  options.spatial_shape = common_shape(left, right);
  const std::int32_t batch_size = std::max(left.batch_size(), right.batch_size());
  options.batch_size = batch_size;
  if (left.device().kind == DeviceKind::cuda) return cuda::unite(left, right, options);
  const KeyLayout layout = common_layout(left, right, batch_size);

  Buffer<std::uint64_t> keys(elements);
  Buffer<std::int32_t> order(elements);
  append_keys(left, layout, 0, keys.data(), order.data());
  append_keys(right, layout, left.size(), keys.data() + left.size(), order.data() + left.size());
  radix_sort_pairs(keys.span(), order.span(), key_bits(layout));
  KeyRuns runs = find_runs(keys.span(), order.span());
  return {CoordinateSetBuilder::build(std::move(runs.keys), {}, {}, layout, batch_size, options),
          slice(runs.run_of, 0, left.size()), slice(runs.run_of, left.size(), right.size())};
}

PrunedSet prune_set(const CoordinateSet& set, ConstTensorView keep) {
  PUMICE_EXPECTS(keep.dtype() == DType::u8 && keep.rank() == 1 && keep.rows() == set.size(),
                 "keep: ", name_of(keep.dtype()), ' ', to_string(keep.shape()),
                 "; give one u8 for each of the ", set.size(), " rows");
  if (set.device().kind == DeviceKind::cuda) return cuda::prune(set, keep);
  const auto* kept_row = keep.data<std::uint8_t>();
  const int columns = 1 + set.dimension();
  const Compaction rows(set.size(), [kept_row](std::int64_t row) { return kept_row[row] != 0; });
  Tensor kept(Shape{rows.kept()}, DType::i32);
  Tensor coordinates(Shape{rows.kept(), columns}, DType::i32);
  Buffer<std::int32_t> new_row(set.size());
  {
    auto* old_row = kept.data<std::int32_t>();
    auto* to = coordinates.data<std::int32_t>();
    const auto* from = set.coordinates().data<std::int32_t>();
    rows.for_each([&](std::int64_t row, std::int64_t position) {
      old_row[position] = static_cast<std::int32_t>(row);
      new_row[row] = static_cast<std::int32_t>(position);
      std::copy_n(from + row * columns, columns, to + position * columns);
    });
  }
  const std::int32_t* order = set.index().order;
  const auto row_of = [order](std::int64_t rank) { return order == nullptr ? rank : order[rank]; };
  const Compaction ranks(set.size(),
                         [&](std::int64_t rank) { return kept_row[row_of(rank)] != 0; });
  Buffer<std::uint64_t> keys(ranks.kept());
  Buffer<std::int32_t> new_order(order == nullptr ? 0 : ranks.kept());
  const auto old_keys = set.sorted_keys();
  ranks.for_each([&](std::int64_t rank, std::int64_t position) {
    keys[position] = old_keys[static_cast<std::size_t>(rank)];
    if (order != nullptr) new_order[position] = new_row[order[rank]];
  });
  const auto new_ranks = new_order.span();
  if (std::is_sorted(new_ranks.begin(), new_ranks.end())) new_order = {};
  return {CoordinateSetBuilder::build(std::move(keys), std::move(new_order), std::move(coordinates),
                                      set.layout(), set.batch_size(), set.options()),
          std::move(kept)};
}

CoordinateSetPtr reorder(const CoordinateSet& set, ConstTensorView row) {
  PUMICE_EXPECTS(row.dtype() == DType::i32 && row.rank() == 1 && row.rows() == set.size(),
                 "row: ", name_of(row.dtype()), ' ', to_string(row.shape()),
                 "; give one i32 for each of the ", set.size(), " rows");
  if (set.device().kind == DeviceKind::cuda) return cuda::reorder(set, row);
  PUMICE_EXPECTS(set.in_key_order(),
                 "reorder: the rows of the set are in an order already; give a "
                 "set in key order");
  const std::int64_t rows = set.size();
  const auto* to = row.data<std::int32_t>();
  Buffer<std::uint8_t> taken(rows);
  std::fill_n(taken.data(), rows, std::uint8_t{0});
  bool ascending = true;
  for (std::int64_t rank = 0; rank < rows; ++rank) {
    PUMICE_EXPECTS(to[rank] >= 0 && to[rank] < rows && taken[to[rank]] == 0, "row[", rank,
                   "] = ", to[rank], "; name each of the ", rows, " rows once");
    taken[to[rank]] = 1;
    ascending = ascending && to[rank] == rank;
  }
  const std::int64_t columns = 1 + set.dimension();
  Tensor coordinates(Shape{rows, columns}, DType::i32);
  Buffer<std::uint64_t> keys(rows);
  Buffer<std::int32_t> order(ascending ? 0 : rows);
  const auto old_keys = set.sorted_keys();
  const auto* from = set.coordinates().data<std::int32_t>();
  auto* cells = coordinates.data<std::int32_t>();
  parallel_for(rows, kChunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t rank = begin; rank < end; ++rank) {
      keys[rank] = old_keys[static_cast<std::size_t>(rank)];
      if (!ascending) order[rank] = to[rank];
      std::copy_n(from + rank * columns, columns, cells + to[rank] * columns);
    }
  });
  return CoordinateSetBuilder::build(std::move(keys), std::move(order), std::move(coordinates),
                                     set.layout(), set.batch_size(), set.options());
}

Tensor batch_ranges(const CoordinateSet& set) {
  if (set.device().kind == DeviceKind::cuda) return cuda::batch_ranges(set);
  Tensor ranges(Shape{std::int64_t{set.batch_size()} + 1}, DType::i64);
  const auto keys = set.sorted_keys();
  auto* begin = ranges.data<std::int64_t>();
  for (std::int64_t batch = 0; batch <= set.batch_size(); ++batch) {
    begin[batch] = std::partition_point(
                       keys.begin(), keys.end(),
                       [&](std::uint64_t key) { return decode_batch(set.layout(), key) < batch; }) -
                   keys.begin();
  }
  return ranges;
}

}   // namespace pumice
