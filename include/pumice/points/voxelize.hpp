// From points in metres to cells: which voxel each point falls into, and one row for each voxel.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <pumice/points/point_cloud.hpp>

namespace pumice {

/// What becomes of the features of points that share a voxel.
enum class Reduction : unsigned char {
  first,   // those of the point with the smallest index
  mean,    // summed in float64 in point order, divided, rounded once
  max,     // per channel
  sum,     // summed in float64 in point order, rounded once
};

/// "first", "mean", "max" or "sum"; UserError for others.
Reduction parse_reduction(std::string_view name);
std::string_view name_of(Reduction reduction);

struct VoxelOptions {
  /// Metres along x, y, z.
  std::array<float, 3> size{};
  /// x0, y0, z0, x1, y1, z1 in metres: points outside [low, high) are left out, and cell 0 begins
  /// at `low`. Without it nothing is left out and cell 0 begins at 0.
  std::optional<std::array<float, 6>> range{};
  Reduction reduction = Reduction::mean;
};

struct Voxels {
  Tensor coordinates;      // i32 [N, 4]: batch, x, y, z; in key order
  Tensor features;         // f32 [N, C]
  Tensor point_to_voxel;   // i64 [P]: row of the voxel, -1 for a point out of range
  Tensor voxel_begin;    // i64 [N + 1]: points of voxel n are voxel_points[begin[n], begin[n + 1])
  Tensor voxel_points;   // i64 [points kept]: ascending within a voxel
  Tensor cloud_begin;    // i64 [clouds + 1]: where each cloud's points begin in point_to_voxel

  std::int64_t size() const { return coordinates.rows(); }
};

/// One cloud of a batch, with the features to reduce: f32 [P, C]. Looks at both, owns neither.
struct FeaturedCloud {
  const PointCloud* cloud = nullptr;
  ConstTensorView features;
};

/// cell = floor((position − origin) / size), in float32 arithmetic: one subtraction, one division.
/// UserError for a size that is not positive and finite, an empty range, positions that are not
/// finite, features of another shape, and cells that do not fit int32 (naming the point).
Voxels voxelize(const PointCloud& cloud, ConstTensorView features, const VoxelOptions& options);

/// Several clouds as one batch: cloud b becomes batch index b, and points count through all clouds.
Voxels voxelize_batch(std::span<const FeaturedCloud> clouds, const VoxelOptions& options);

}   // namespace pumice
