// The cells that points fall into, as a coordinate set, wherever the points are. What becomes of
// their features is for `reduce_rows` (pumice/ops/rows.hpp), which has a gradient.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/results.hpp>

namespace pumice {

struct VoxelSiteOptions {
  /// Metres along x, y, z.
  std::array<float, 3> size{};
  /// x0, y0, z0, x1, y1, z1 in metres: points outside [low, high) are left out, and cell 0 begins
  /// at `low`. Without it cell 0 begins at 0.
  std::optional<std::array<float, 6>> range{};
  /// Of the set: points whose cell is outside [0, shape) are left out.
  std::optional<Axes> spatial_shape{};
  std::int32_t batch_size = 1;
  /// The smallest and largest x, y, z of all points, for points on a device: with them, a range or
  /// a spatial shape they need not be brought to the host to be looked at.
  std::optional<std::array<float, 6>> bounds{};
};

/// A point that is kept has no cell in 32 bits, or is not finite.
class NoCellError : public UserError {
 public:
  using UserError::UserError;
};

struct VoxelSites {
  CoordinateSetPtr set;   // rows in key order
  Tensor row_of;          // i32 [P]: row of each point's voxel, -1 for a point that is left out
};

/// points: f32 [P, 3 or more], x, y, z first; batch: i32 [P], the batch item of each point, in any
/// order; undefined: all are of item 0. Cells are those of `voxelize` (pumice/points/voxelize.hpp):
/// floor((position − origin) / size) in float32. UserError for a size that is not positive and
/// finite, an empty range and a batch item that there is not, NoCellError for a point that is not
/// finite or, being kept, has no cell in 32 bits. On a device, waits for how many voxels there are.
/// `row_of`: where that goes.
VoxelSites voxel_sites(ConstTensorView points, ConstTensorView batch,
                       const VoxelSiteOptions& options, const Place& row_of = {});

}   // namespace pumice
