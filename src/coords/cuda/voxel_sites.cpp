// A box that holds all cells, so that they have keys, then the voxels in it.
#include "coords/cuda/voxel_sites.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>

#include "coords/cpu/key_list.hpp"
#include "coords/cpu/voxel_sites.hpp"
#include "coords/cuda/coordinate_set.hpp"
#include "coords/cuda/voxelize.hpp"
#include "coords/voxel_arguments.hpp"

namespace pumice::cuda {
namespace {

/// The cell of a position, in the arithmetic of kernels: rising positions have rising cells.
std::int32_t cell_at(float position, float origin, float size, std::size_t axis) {
  const float cell = std::floor((position - origin) / size);
  if (cell >= -0x1p31f && cell < 0x1p31f) return static_cast<std::int32_t>(cell);
  throw NoCellError(pumice::detail::concatenate(
      "a point at ", "xyz"[axis], " = ", position, " m is in cell ", cell, " at ", size,
      " m a voxel; cells are numbers of 32 bits, so drop such points or give a range"));
}

/// A box of the cells of all points that are kept.
CoordinateBounds cell_bounds(ConstTensorView points, const VoxelSiteOptions& options) {
  CoordinateBounds cells;
  if (options.spatial_shape) {
    for (std::size_t axis = 0; axis < 3; ++axis)
      cells.high[axis] = std::max((*options.spatial_shape)[axis] - 1, 0);
    return cells;
  }
  if (options.range) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const float low = (*options.range)[axis];
      const float last =
          std::nextafter((*options.range)[axis + 3], -std::numeric_limits<float>::infinity());
      cells.high[axis] = cell_at(last, low, options.size[axis], axis);
    }
    return cells;
  }
  const std::array<float, 6> bounds =
      options.bounds ? *options.bounds
                     : cpu::position_bounds(copy_to_host(points, points.stream()));
  for (std::size_t axis = 0; axis < 3 && points.rows() > 0; ++axis) {
    cells.low[axis] = cell_at(bounds[axis], 0.0f, options.size[axis], axis);
    cells.high[axis] = cell_at(bounds[axis + 3], 0.0f, options.size[axis], axis);
  }
  return cells;
}

Bounds wide(const CoordinateBounds& cells) {
  Bounds bounds;
  std::copy(cells.low.begin(), cells.low.end(), bounds.low.begin());
  std::copy(cells.high.begin(), cells.high.end(), bounds.high.begin());
  return bounds;
}

/// All cells that have a key.
CoordinateBounds bounds_of(const KeyLayout& layout) {
  constexpr std::int64_t kLow = std::numeric_limits<std::int32_t>::min();
  constexpr std::int64_t kHigh = std::numeric_limits<std::int32_t>::max();
  CoordinateBounds cells;
  for (int axis = 0; axis < layout.dimension; ++axis) {
    const std::int64_t low = -layout.bias[axis];
    const std::int64_t high = low + (std::int64_t{1} << layout.bits[axis]) - 1;
    cells.low[static_cast<std::size_t>(axis)] = static_cast<std::int32_t>(std::max(low, kLow));
    cells.high[static_cast<std::size_t>(axis)] = static_cast<std::int32_t>(std::min(high, kHigh));
  }
  return cells;
}

DevicePoints device_points(const ConstTensorView& points, const ConstTensorView& batch,
                           RowCountRef count, std::int32_t batch_size) {
  return {.positions = points.data<float>(),
          .stride = static_cast<std::int32_t>(points.extent(1)),
          .count = count,
          .clouds = batch_size,
          .batch = batch.defined() ? batch.data<std::int32_t>() : nullptr};
}

Tensor copy_of(const Buffer<std::int32_t>& rows, const Place& place, StreamView stream) {
  Tensor row_of = place.make({rows.size()}, DType::i32, stream, "row_of");
  copy_async(row_of.raw(), stream.device, rows.data(), stream.device, row_of.bytes(), stream);
  return row_of;
}

}   // namespace

VoxelSites voxel_sites(ConstTensorView points, ConstTensorView batch,
                       const VoxelSiteOptions& options, const Place& place) {
  const StreamView stream = points.stream();
  const std::int64_t count = points.rows();
  const CoordinateBounds cells = cell_bounds(points, options);
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  DeviceVoxels made =
      voxelize(runner, device_points(points, batch, {nullptr, count}, options.batch_size),
               {.size = options.size,
                .range = options.range,
                .shape = options.spatial_shape,
                .layout = roomy_layout(3, wide(cells), options.batch_size),
                .capacities = {capacity_for_rows(std::max<std::int64_t>(count, 1))}});
  const std::int64_t voxels = wait_for_sites(made.sets.front().rows().count, stream, "voxel_sites");
  Tensor row_of = copy_of(made.point_to_voxel, place, stream);
  return {DeviceSetBuilder::build({.set = std::move(made.sets.front()),
                                   .rows = voxels,
                                   .batch_size = options.batch_size,
                                   .options = {.spatial_shape = options.spatial_shape,
                                               .batch_size = options.batch_size},
                                   .bounds = cells},
                                  stream),
          std::move(row_of)};
}

PlannedVoxels planned_voxels(const ConstTensorView& points, const ConstTensorView& batch,
                             const RowCount& count, const VoxelSiteOptions& given,
                             const PlannedCoordinates& planned, const Place& place,
                             std::span<std::uint32_t> also_zeroed) {
  VoxelSiteOptions options = given;
  options.spatial_shape = planned.options.spatial_shape;
  options.batch_size = planned.batch_size;
  pumice::detail::check_voxel_arguments(points, batch, options);
  PUMICE_EXPECTS(count.capacity() == points.rows(), "a count within ", count.capacity(), " for ",
                 points.rows(), " points; give one for as many");
  PUMICE_EXPECTS(planned.layout.dimension == 3, "a plan of sites of ", planned.layout.dimension,
                 " axes is given points; they have x, y and z");
  const StreamView stream = points.stream();
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  DeviceVoxels made =
      voxelize(runner, device_points(points, batch, count.ref(), options.batch_size),
               {.size = options.size,
                .range = options.range,
                .shape = options.spatial_shape,
                .layout = planned.layout,
                .capacities = planned.capacities,
                .also_zeroed = also_zeroed});
  Tensor row_of = copy_of(made.point_to_voxel, place, stream);
  PlannedCoordinates known = planned;
  // Which points are kept is not for bounds to say, so that any cell with a key may be there.
  if (!options.range && !options.spatial_shape) known.bounds = bounds_of(planned.layout);
  return {build_planned(std::move(made.sets), {}, known, stream), std::move(row_of)};
}

}   // namespace pumice::cuda
