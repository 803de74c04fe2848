// Room, bounds and rows of sets that are made from sets.
#include "coords/cuda/derived_sets.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <pumice/shared/floor_division.h>
#include <pumice/core/copy.hpp>

#include "coords/cpu/key_list.hpp"
#include "coords/cuda/coordinate_set.hpp"
#include "coords/cuda/set_operations.hpp"

namespace pumice::cuda {
namespace {

const CoordinateBounds& bounds_of(const CoordinateSet& set) {
  PUMICE_ENSURES(set.options().bounds.has_value(), "a set on a device without bounds");
  return *set.options().bounds;
}

Bounds widened(const CoordinateBounds& bounds) {
  Bounds wide;
  std::copy(bounds.low.begin(), bounds.low.end(), wide.low.begin());
  std::copy(bounds.high.begin(), bounds.high.end(), wide.high.begin());
  return wide;
}

CoordinateBounds both(const CoordinateBounds& left, const CoordinateBounds& right) {
  CoordinateBounds bounds;
  for (std::size_t axis = 0; axis < kMaxDimension; ++axis) {
    bounds.low[axis] = std::min(left.low[axis], right.low[axis]);
    bounds.high[axis] = std::max(left.high[axis], right.high[axis]);
  }
  return bounds;
}

/// The first `size` of `rows` as a tensor.
Tensor row_list(const std::int32_t* rows, std::int64_t size, StreamView stream) {
  Tensor list(Shape{size}, DType::i32, stream);
  copy_async(list.raw(), stream.device, rows, stream.device, list.bytes(), stream);
  return list;
}

jit::DeviceRunner runner_for(const CoordinateSet& set) {
  return {set.stream(), default_allocator(set.device())};
}

}   // namespace

CoordinateSetPtr coarsen(const CoordinateSet& set, const Axes& factor,
                         const CoordinateOptions& options) {
  jit::DeviceRunner runner = runner_for(set);
  if (set.size() == 0) return empty_set(runner, set, options);
  const auto dimension = static_cast<std::size_t>(set.dimension());
  const Bounds fine = widened(bounds_of(set));
  const CoarseCells cells =
      coarse_cells(set.layout(), std::span(fine.low).first(dimension),
                   std::span(fine.high).first(dimension), set.batch_size(), factor);
  CoordinateBounds bounds = bounds_of(set);
  for (std::size_t axis = 0; axis < dimension; ++axis) {
    bounds.low[axis] = static_cast<std::int32_t>(floor_divide(fine.low[axis], factor[axis]));
    bounds.high[axis] = static_cast<std::int32_t>(floor_divide(fine.high[axis], factor[axis]));
  }
  DeviceSet made = coarsen_set(runner, ref_of(set), factor, cells, {},
                               capacity_for_rows(set.size()), "coarsened set");
  return finish_set(runner, std::move(made), set, options, bounds, {});
}

UnionSet unite(const CoordinateSet& left, const CoordinateSet& right,
               const CoordinateOptions& options) {
  PUMICE_EXPECTS(left.device() == right.device(), "one set is on ", to_string(left.device()),
                 ", the other on ", to_string(right.device()),
                 "; CoordinateSet::copy_to brings one to the other");
  jit::DeviceRunner runner = runner_for(left);
  const StreamView stream = runner.stream();
  // An empty set says nothing about where the sites of a union are.
  const CoordinateBounds bounds = right.size() == 0  ? bounds_of(left)
                                  : left.size() == 0 ? bounds_of(right)
                                                     : both(bounds_of(left), bounds_of(right));
  const std::int32_t batch_size = options.batch_size.value_or(left.batch_size());
  const bool one_layout = left.layout() == right.layout();
  const KeyLayout layout =
      one_layout ? left.layout() : roomy_layout(left.dimension(), widened(bounds), batch_size);
  const std::int64_t room = left.size() + right.size();
  DeviceUnion united = unite_sets(runner, ref_of(left), ref_of(right), layout,
                                  capacity_for_rows(room), "union of sets");
  const std::int32_t* const row_of = united.row_of.data();
  UnionSet result{{},
                  row_list(row_of, left.size(), stream),
                  row_list(row_of + united.right_begin, right.size(), stream)};
  const std::int64_t rows = wait_for_sites(united.set.rows().count, stream, "a union of sets");
  result.set = DeviceSetBuilder::build({.set = std::move(united.set),
                                        .rows = rows,
                                        .batch_size = batch_size,
                                        .options = options,
                                        .bounds = bounds},
                                       stream);
  return result;
}

PrunedSet prune(const CoordinateSet& set, const ConstTensorView& keep) {
  PUMICE_EXPECTS(keep.device() == set.device(), "keep is on ", to_string(keep.device()),
                 ", the set on ", to_string(set.device()), "; copy_to brings it there");
  jit::DeviceRunner runner = runner_for(set);
  const StreamView stream = runner.stream();
  DevicePruned pruned = prune_set(runner, ref_of(set), keep.data<std::uint8_t>(),
                                  capacity_for_rows(set.size()), "kept sites");
  const std::int64_t rows = wait_for_sites(pruned.set.rows().count, stream, "a pruned set");
  PrunedSet result{{}, row_list(pruned.kept.data(), rows, stream)};
  result.set = DeviceSetBuilder::build({.set = std::move(pruned.set),
                                        .rows = rows,
                                        .batch_size = set.batch_size(),
                                        .options = set.options(),
                                        .bounds = bounds_of(set)},
                                       stream);
  return result;
}

CoordinateSetPtr reorder(const CoordinateSet& set, const ConstTensorView& row) {
  PUMICE_EXPECTS(row.device() == set.device(), "row is on ", to_string(row.device()),
                 ", the set on ", to_string(set.device()), "; copy_to brings it there");
  jit::DeviceRunner runner = runner_for(set);
  if (set.size() == 0) return empty_set(runner, set, set.options());
  const CoordinateSetRef ref = ref_of(set);
  PUMICE_EXPECTS(ref.order == nullptr,
                 "reorder: the rows of the set are in an order already; give a set in key order");
  return DeviceSetBuilder::build(
      {.set = reorder_set(runner, ref, row.data<std::int32_t>(), capacity_for_rows(set.size()),
                          "reordered set"),
       .rows = set.size(),
       .batch_size = set.batch_size(),
       .options = set.options(),
       .bounds = bounds_of(set)},
      runner.stream());
}

Tensor batch_ranges(const CoordinateSet& set) {
  jit::DeviceRunner runner = runner_for(set);
  const auto begin = batch_ranges(runner, ref_of(set), set.batch_size());
  Tensor ranges(Shape{begin.size()}, DType::i64, runner.stream());
  copy_async(ranges.raw(), set.device(), begin.data(), set.device(), ranges.bytes(),
             runner.stream());
  return ranges;
}

}   // namespace pumice::cuda
