// Keys that hold the bounds, then the sort that every set takes.
#include "coords/cuda/set_within.hpp"

#include <algorithm>
#include <utility>

#include "coords/cpu/coordinate_checks.hpp"
#include "coords/cpu/key_list.hpp"
#include "coords/cuda/coordinate_set.hpp"
#include "coords/cuda/create_sets.hpp"

namespace pumice::cuda {

CoordinateSetPtr set_within(Tensor coordinates, const CoordinateBounds& bounds,
                            const CoordinateOptions& options) {
  const StreamView stream = coordinates.stream();
  const std::int64_t rows = coordinates.rows();
  const int dimension = static_cast<int>(coordinates.extent(1)) - 1;
  const std::int32_t batch_size = options.batch_size.value_or(1);
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  Bounds wide;
  std::copy(bounds.low.begin(), bounds.low.end(), wide.low.begin());
  std::copy(bounds.high.begin(), bounds.high.end(), wide.high.begin());
  CoordinateOptions declared = options;
  declared.bounds = bounds;
  declared.batch_size = std::max(batch_size, 1);
  const ColumnBounds allowed = allowed_columns(dimension, declared);
  CreatedSets made = create_sets(
      runner,
      {.data = static_cast<const std::int32_t*>(coordinates.raw()), .rows = {nullptr, rows}},
      {.layout = roomy_layout(dimension, wide, batch_size),
       .columns = {.low = allowed.low, .high = allowed.high},
       .capacities = {capacity_for_rows(rows)}});
  return DeviceSetBuilder::build({.set = std::move(made.sets.front()),
                                  .rows = rows,
                                  .coordinates = std::move(coordinates),
                                  .batch_size = batch_size,
                                  .options = options,
                                  .bounds = bounds},
                                 stream);
}

}   // namespace pumice::cuda
