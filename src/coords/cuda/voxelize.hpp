// Voxels of points on the device.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <pumice/coords/voxelize_arguments.h>
#include <pumice/coords/coordinate_set.hpp>

#include "coords/cuda/device_set.hpp"
#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// Points of one cloud or several, one after the other, on the device.
struct DevicePoints {
  const float* positions = nullptr;   // [points, stride], x y z first
  std::int32_t stride = 3;
  RowCountRef count{};
  const std::int64_t* cloud_begin = nullptr;   // [clouds + 1]; null: one cloud
  std::int32_t clouds = 1;
  const std::int32_t* batch = nullptr;   // [points], the cloud of each; null: as cloud_begin says
  const float* features = nullptr;       // [points, channels]; null: none are reduced
  std::int32_t channels = 0;
};

struct DeviceVoxelOptions {
  std::array<float, 3> size{};
  /// x0, y0, z0, x1, y1, z1: points outside [low, high) are left out, and cell 0 begins at `low`.
  std::optional<std::array<float, 6>> range{};
  /// Points whose cell is outside [0, shape) are left out.
  std::optional<Axes> shape{};
  PointReduction reduction = PointReduction::mean;
  KeyLayout layout{};                    // of the voxels; a point outside it is trouble
  std::vector<SetCapacity> capacities;   // of the voxels, and of coarser levels as in CreateOptions
  std::string name = "voxels";
  std::span<std::uint32_t> also_zeroed{};   // as in CreateOptions
};

struct DeviceVoxels {
  std::vector<DeviceSet> sets;   // [0] the voxels, in key order
  Buffer<float> features;        // [capacity of voxels, channels]; NaN where they are poison
  Buffer<std::int32_t> point_to_voxel;   // [capacity of points]; -1 for a point that is left out
  Buffer<std::int64_t> voxel_begin;      // [capacity of voxels + 1]
  Buffer<std::uint32_t> voxel_points;    // points of voxel v: [voxel_begin[v], voxel_begin[v + 1])
};

/// What pumice::voxelize gives, bit for bit. A fill, a launch, a launch a pass of a sort
/// of keys, 2 for the levels and 1 for the features.
DeviceVoxels voxelize(jit::KernelRunner& runner, const DevicePoints& points,
                      const DeviceVoxelOptions& options);

}   // namespace pumice::cuda
