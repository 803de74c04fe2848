// Quantise, sort, cut into levels, reduce.
#include "coords/cuda/voxelize.hpp"

#include <algorithm>

#include <pumice/core/error.hpp>

#include "coords/cuda/pyramid.hpp"
#include "coords/cuda/radix_sort.hpp"
#include "coords/cuda/sources.hpp"
#include "core/cuda/status.hpp"

namespace pumice::cuda {
namespace {

jit::LaunchShape threads_for(std::int64_t size) {
  return {.blocks = (size + kVoxelizeThreads - 1) / kVoxelizeThreads, .threads = kVoxelizeThreads};
}

void quantise(jit::KernelRunner& runner, const DevicePoints& points,
              const DeviceVoxelOptions& options, RadixSort<std::uint64_t>& sort,
              RowTrouble* outside, std::int64_t* kept) {
  QuantiseArguments arguments{.points = points.count,
                              .positions = points.positions,
                              .cloud_begin = points.cloud_begin,
                              .batch = points.batch,
                              .clouds = points.clouds,
                              .stride = points.stride,
                              .has_range = options.range ? 1 : 0,
                              .layout = options.layout,
                              .keys = sort.keys(),
                              .totals = sort.counted_by_caller(),
                              .outside = outside,
                              .kept = kept};
  std::copy(options.size.begin(), options.size.end(), arguments.size);
  if (options.range) {
    std::copy_n(options.range->begin(), 3, arguments.origin);
    std::copy_n(options.range->begin() + 3, 3, arguments.high);
  }
  if (options.shape) std::copy_n(options.shape->begin(), kPointAxes, arguments.shape);
  // Also where there is no point: poison has to go on.
  const std::int64_t blocks = (points.count.capacity + kQuantisePoints - 1) / kQuantisePoints;
  runner.run(coords_kernel("quantise_points"),
             {.blocks = std::max<std::int64_t>(blocks, 1), .threads = kVoxelizeThreads}, arguments);
}

void reduce(jit::KernelRunner& runner, const DevicePoints& points,
            const DeviceVoxelOptions& options, DeviceVoxels& voxels) {
  const std::int64_t capacity = voxels.sets.front().capacity().rows;
  voxels.features = runner.make<float>(capacity * points.channels);
  jit::LaunchShape shape = threads_for(capacity);
  shape.blocks_y = points.channels;
  runner.run(coords_kernel("reduce_points"), shape,
             ReduceArguments{.voxels = voxels.sets.front().rows(),
                             .begin = voxels.voxel_begin.data(),
                             .members = voxels.voxel_points.data(),
                             .features = points.features,
                             .reduced = voxels.features.data(),
                             .channels = points.channels,
                             .reduction = options.reduction});
}

}   // namespace

DeviceVoxels voxelize(jit::KernelRunner& runner, const DevicePoints& points,
                      const DeviceVoxelOptions& options) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    PUMICE_EXPECTS(options.size[axis] > 0.0f, "voxel size[", axis, "] = ", options.size[axis],
                   "; give a size above 0");
  }
  const std::int64_t capacity = points.count.capacity;
  FillList fill;
  Pyramid pyramid(runner, options.layout, capacity, 0, options.capacities, false, options.name,
                  fill);
  // One bit more than keys have tells the points that are left out from the others.
  RadixSort<std::uint64_t> sort(runner, {capacity, key_bits(options.layout) + 1}, fill);
  auto trouble = runner.make<RowTrouble>(1);
  auto kept = runner.make<std::int64_t>(1);
  DeviceVoxels voxels;
  voxels.point_to_voxel = runner.make<std::int32_t>(capacity);
  voxels.voxel_begin = runner.make<std::int64_t>(options.capacities.front().rows + 1);
  fill.add(trouble, 0);
  fill.add(kept, 0);
  fill.add(voxels.point_to_voxel, 0xffffffffu);
  fill.add(options.also_zeroed.data(), std::ssize(options.also_zeroed), 0);
  fill.run(runner);
  quantise(runner, points, options, sort, trouble.data(), kept.data());
  sort.run(runner, points.count);
  pyramid.make(runner, {.count = {kept.data(), capacity},
                        .keys = sort.sorted_keys(),
                        .values = sort.sorted_values(),
                        .row_of = voxels.point_to_voxel.data(),
                        .begin = voxels.voxel_begin.data(),
                        .outside = trouble.data(),
                        .site = status_site(options.name)});
  voxels.sets = pyramid.take();
  voxels.voxel_points = sort.take_sorted_values();
  if (points.features != nullptr) reduce(runner, points, options, voxels);
  return voxels;
}

}   // namespace pumice::cuda
