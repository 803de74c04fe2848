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

}   // namespace

VoxelSites voxel_sites(ConstTensorView points, ConstTensorView batch,
                       const VoxelSiteOptions& options, const Place& place) {
  const StreamView stream = points.stream();
  const std::int64_t count = points.rows();
  const CoordinateBounds cells = cell_bounds(points, options);
  Bounds wide;
  std::copy(cells.low.begin(), cells.low.end(), wide.low.begin());
  std::copy(cells.high.begin(), cells.high.end(), wide.high.begin());
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  DeviceVoxels made =
      voxelize(runner,
               {.positions = points.data<float>(),
                .stride = static_cast<std::int32_t>(points.extent(1)),
                .count = {nullptr, count},
                .clouds = options.batch_size,
                .batch = batch.defined() ? batch.data<std::int32_t>() : nullptr},
               {.size = options.size,
                .range = options.range,
                .shape = options.spatial_shape,
                .layout = roomy_layout(3, wide, options.batch_size),
                .capacities = {capacity_for_rows(std::max<std::int64_t>(count, 1))}});
  const std::int64_t voxels = wait_for_sites(made.sets.front().rows().count, stream, "voxel_sites");
  Tensor row_of = place.make({count}, DType::i32, stream, "row_of");
  copy_async(row_of.raw(), stream.device, made.point_to_voxel.data(), stream.device, row_of.bytes(),
             stream);
  return {DeviceSetBuilder::build({.set = std::move(made.sets.front()),
                                   .rows = voxels,
                                   .batch_size = options.batch_size,
                                   .options = {.spatial_shape = options.spatial_shape,
                                               .batch_size = options.batch_size},
                                   .bounds = cells},
                                  stream),
          std::move(row_of)};
}

}   // namespace pumice::cuda
