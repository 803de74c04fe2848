// Bounds from the caller or from a look on the host, then the sort that every set takes.
#include "coords/cuda/from_coordinates.hpp"

#include <algorithm>
#include <utility>

#include <pumice/core/copy.hpp>

#include "coords/cpu/coordinate_checks.hpp"
#include "coords/cpu/key_list.hpp"
#include "coords/cuda/coordinate_set.hpp"
#include "coords/cuda/create_sets.hpp"
#include "coords/cuda/set_within.hpp"

namespace pumice::cuda {
namespace {

void declare(CoordinateOptions& options, const ConstTensorView& coordinates) {
  check_shape(coordinates);
  check_options(static_cast<int>(coordinates.extent(1)) - 1, options);
  if (options.bounds && options.batch_size) return;
  const Tensor here = copy_to_host(coordinates, coordinates.stream());
  const KeyList checked = encode_coordinates(here, options);
  const Bounds found = bounds_of(here);
  options.batch_size = checked.batch_size;
  CoordinateBounds bounds;
  for (std::size_t axis = 0; axis < kMaxDimension; ++axis) {
    bounds.low[axis] = static_cast<std::int32_t>(found.low[axis]);
    bounds.high[axis] = static_cast<std::int32_t>(found.high[axis]);
  }
  options.bounds = bounds;
}

/// The first `size` elements as a tensor.
Tensor list_of(const Buffer<std::int32_t>& values, std::int64_t size, StreamView stream) {
  Tensor list(Shape{size}, DType::i32, stream);
  copy_async(list.raw(), stream.device, values.data(), stream.device, list.bytes(), stream);
  return list;
}

}   // namespace

CoordinateSetPtr create(const ConstTensorView& coordinates, CoordinateOptions options) {
  declare(options, coordinates);
  return set_within(copy_to(coordinates.stream(), coordinates), *options.bounds, options);
}

UniqueCoordinates unique_coordinates(const ConstTensorView& coordinates,
                                     CoordinateOptions options) {
  declare(options, coordinates);
  const StreamView stream = coordinates.stream();
  const std::int64_t rows = coordinates.rows();
  const int dimension = static_cast<int>(coordinates.extent(1)) - 1;
  const ColumnBounds allowed = allowed_columns(dimension, options);
  Bounds bounds;
  std::copy_n(options.bounds->low.begin(), dimension, bounds.low.begin());
  std::copy_n(options.bounds->high.begin(), dimension, bounds.high.begin());
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  CreatedSets made = create_sets(
      runner,
      {.data = static_cast<const std::int32_t*>(coordinates.raw()), .rows = {nullptr, rows}},
      {.layout = roomy_layout(dimension, bounds, *options.batch_size),
       .columns = {.low = allowed.low, .high = allowed.high},
       .repeats = Repeats::merge,
       .capacities = {capacity_for_rows(rows)}});
  const std::int64_t distinct =
      wait_for_sites(made.sets.front().rows().count, stream, "a coordinate set");
  return {DeviceSetBuilder::build({.set = std::move(made.sets.front()),
                                   .rows = distinct,
                                   .batch_size = *options.batch_size,
                                   .options = options,
                                   .bounds = *options.bounds},
                                  stream),
          list_of(made.row_of, rows, stream), list_of(made.first, distinct, stream)};
}

}   // namespace pumice::cuda
