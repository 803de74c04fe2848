// The scans of a run: read, made voxels, and what a network says of each of their points.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <pumice/points/point_cloud.hpp>
#include <pumice/points/voxelize.hpp>

#include "arguments.hpp"

namespace pumice::cli {

/// Side by side, and the voxels they make.
struct Batch {
  std::vector<PointCloud> clouds;
  Voxels voxels;
  std::int64_t points = 0;
  std::int64_t dropped_points = 0;
  double voxelize_ms = 0;
};

/// `labels`: SemanticKITTI .label files, one a scan, that replace what the scans say; or none.
Batch read_batch(const std::vector<std::string>& scans, const std::vector<std::string>& labels,
                 const ScanArguments& reading, const VoxelOptions& options);

/// Class with the highest of `scores` [voxels, classes] for every point, scan after scan; -1 where
/// it is in no voxel.
std::vector<std::int32_t> point_classes(const Batch& batch, const Tensor& scores);

/// Label of every point, scan after scan; -1 for those of scans without any.
std::vector<std::int32_t> point_labels(const Batch& batch);

/// Voxels of the first scan.
std::int64_t first_voxels(const Batch& batch);

}   // namespace pumice::cli
