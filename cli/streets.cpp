// Bounds first: a scan may be one point, or lie a million voxels out.
#include "streets.hpp"

#include <algorithm>
#include <limits>

namespace pumice::cli {
namespace {

constexpr std::int64_t kColumns = 16;
constexpr std::int64_t kFarthest = std::int64_t{1} << 20;   // voxels
constexpr std::int64_t kMostVoxels = 12'000'000;
constexpr std::int64_t kMostPoints = 4 * kMostVoxels;

}   // namespace

Streets::Streets(const PointCloud& cloud, const VoxelOptions& options) : options_(options) {
  const Voxels voxels = voxelize(cloud, point_features(cloud), options);
  cells_ = voxels.coordinates;
  options_.range.reset();
  const float* position = cloud.positions.data<float>();
  const std::int64_t* voxel = voxels.point_to_voxel.data<std::int64_t>();
  for (std::int64_t point = 0; point < cloud.size(); ++point, position += 3) {
    if (voxel[point] >= 0) points_.insert(points_.end(), position, position + 3);
  }
  auto* cell = cells_.data<std::int32_t>();
  for (const std::size_t axis : {0u, 1u}) {
    std::int64_t low = std::numeric_limits<std::int32_t>::max();
    std::int64_t high = std::numeric_limits<std::int32_t>::min();
    for (std::int64_t row = 0; row < cells_.rows(); ++row) {
      const std::int64_t at = cell[4 * row + 1 + static_cast<std::int64_t>(axis)];
      low = std::min(low, at);
      high = std::max(high, at);
    }
    pitch_ = std::max(pitch_, high - low + 2);
    for (std::int64_t row = 0; row < cells_.rows(); ++row) {
      std::int32_t& at = cell[4 * row + 1 + static_cast<std::int64_t>(axis)];
      at = static_cast<std::int32_t>(at - low);
    }
    for (std::size_t i = axis; i < points_.size(); i += 3)
      points_[i] -= static_cast<float>(low) * options.size[axis];
  }
}

bool Streets::fit(std::int64_t copies) const {
  const std::int64_t side =
      std::max(std::min(copies, kColumns), (copies + kColumns - 1) / kColumns);
  return side <= kFarthest / pitch_ && copies <= kMostVoxels / voxels() &&
         copies <= kMostPoints / points();
}

PointCloud Streets::points_of(std::int64_t copies) const {
  PointCloud cloud;
  cloud.positions = Tensor({points() * copies, 3}, DType::f32);
  float* to = cloud.positions.data<float>();
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    const float x = static_cast<float>(copy % kColumns * pitch_) * options_.size[0];
    const float y = static_cast<float>(copy / kColumns * pitch_) * options_.size[1];
    for (std::size_t i = 0; i < points_.size(); i += 3, to += 3) {
      to[0] = points_[i] + x;
      to[1] = points_[i + 1] + y;
      to[2] = points_[i + 2];
    }
  }
  return cloud;
}

CoordinateSetPtr Streets::set_of(std::int64_t copies) const {
  Tensor coordinates({voxels() * copies, 4}, DType::i32);
  std::int32_t* to = coordinates.data<std::int32_t>();
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    const auto x = static_cast<std::int32_t>(copy % kColumns * pitch_);
    const auto y = static_cast<std::int32_t>(copy / kColumns * pitch_);
    const std::int32_t* from = cells_.data<std::int32_t>();
    for (std::int64_t row = 0; row < voxels(); ++row, from += 4, to += 4) {
      to[0] = 0;
      to[1] = from[1] + x;
      to[2] = from[2] + y;
      to[3] = from[3];
    }
  }
  return CoordinateSet::create(coordinates);
}

}   // namespace pumice::cli
