// A scan laid out again and again: more voxels of the same kind, for `pumice bench scaling`.
#pragma once

#include <cstdint>
#include <vector>

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/points/point_cloud.hpp>
#include <pumice/points/voxelize.hpp>

namespace pumice::cli {

/// Copies lie side by side, 16 in a row and 8,192 voxels apart, or further where the scan is wider.
class Streets {
 public:
  /// Of the points that `options` keep, brought to the origin.
  Streets(const PointCloud& cloud, const VoxelOptions& options);

  std::int64_t voxels() const { return cells_.rows(); }
  /// For points_of: no range, since what it cuts off is gone and copies lie outside it.
  const VoxelOptions& options() const { return options_; }

  /// Whether so many copies stay where float32 tells points of a voxel apart, and in memory: up to
  /// 2^20 voxels out, 12 million voxels and 48 million points. For a scan that has voxels.
  bool fit(std::int64_t copies) const;

  PointCloud points_of(std::int64_t copies) const;
  CoordinateSetPtr set_of(std::int64_t copies) const;

 private:
  std::int64_t points() const { return static_cast<std::int64_t>(points_.size() / 3); }

  VoxelOptions options_;
  Tensor cells_;                // i32 [voxels, 4], x and y from 0 on
  std::vector<float> points_;   // x y z
  std::int64_t pitch_ = 8192;   // voxels from copy to copy
};

}   // namespace pumice::cli
