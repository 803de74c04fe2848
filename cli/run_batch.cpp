// Reading scans, and the way back from voxels to points.
#include "run_batch.hpp"

#include <algorithm>

#include <pumice/core/error.hpp>
#include <pumice/nn/profile.hpp>
#include <pumice/points/read.hpp>

#include "core/printable.hpp"
#include "terminal.hpp"

namespace pumice::cli {

Batch read_batch(const std::vector<std::string>& scans, const std::vector<std::string>& labels,
                 const ScanArguments& reading, const VoxelOptions& options) {
  if (!labels.empty() && labels.size() != scans.size()) {
    const bool few = labels.size() < scans.size();
    detail::raise_user("--labels: ", counted(std::ssize(labels), "file"), " for ",
                       counted(std::ssize(scans), "scan"), ", so that ",
                       few ? printable_path(scans[labels.size()]) + " has none"
                           : printable_path(labels[scans.size()]) + " is of no scan",
                       "; give one a scan, in their order");
  }
  Batch batch;
  for (std::size_t i = 0; i < scans.size(); ++i) {
    PointCloud& cloud = batch.clouds.emplace_back(reading.read(scans[i]));
    if (!labels.empty()) replace_labels(cloud, labels[i], scans[i]);
    batch.points += cloud.size();
    batch.dropped_points += cloud.dropped_points;
  }

  std::vector<Tensor> features;
  std::vector<FeaturedCloud> featured;
  for (const PointCloud& cloud : batch.clouds)
    features.push_back(point_features(cloud));
  for (std::size_t i = 0; i < features.size(); ++i)
    featured.push_back({&batch.clouds[i], features[i]});
  const nn::Stopwatch watch;
  batch.voxels = voxelize_batch(featured, options);
  batch.voxelize_ms = watch.ms();
  warn_of_no_voxels(batch.points, batch.voxels.size());
  return batch;
}

std::vector<std::int32_t> point_classes(const Batch& batch, const Tensor& scores) {
  const Tensor values = scores.to(DType::f32);
  const std::int64_t classes = values.extent(1);
  const Tensor& owner = batch.voxels.point_to_voxel;
  std::vector<std::int32_t> result(static_cast<std::size_t>(owner.rows()), -1);
  const std::int64_t* voxel = owner.data<std::int64_t>();
  for (std::size_t point = 0; point < result.size(); ++point) {
    if (voxel[point] < 0) continue;
    const float* row = values.data<float>() + voxel[point] * classes;
    result[point] = static_cast<std::int32_t>(std::max_element(row, row + classes) - row);
  }
  return result;
}

std::vector<std::int32_t> point_labels(const Batch& batch) {
  std::vector<std::int32_t> result;
  result.reserve(static_cast<std::size_t>(batch.points));
  for (const PointCloud& cloud : batch.clouds) {
    if (!cloud.labels.defined()) {
      result.resize(result.size() + static_cast<std::size_t>(cloud.size()), -1);
      continue;
    }
    const auto labels = cloud.labels.span<std::int32_t>();
    result.insert(result.end(), labels.begin(), labels.end());
  }
  return result;
}

std::int64_t first_voxels(const Batch& batch) {
  const auto* coordinates = batch.voxels.coordinates.data<std::int32_t>();
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < batch.voxels.size(); ++row)
    count += coordinates[4 * row] == 0 ? 1 : 0;
  return count;
}

}   // namespace pumice::cli
