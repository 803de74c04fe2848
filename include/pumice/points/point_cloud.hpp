// What a sensor saw: positions in metres and whatever came along with them.
#pragma once

#include <cstdint>

#include <pumice/core/tensor.hpp>

namespace pumice {

struct PointCloud {
  Tensor positions;   // f32 [P, 3], metres
  Tensor intensity;   // f32 [P]; undefined when the scan has none
  Tensor labels;      // i32 [P], class of a point; undefined when there are none
  Tensor time;        // f32 [P], seconds before the last sweep; undefined for a single sweep
  Tensor ring;        // i32 [P], number of the laser; undefined when the scan does not say
  /// Points of the file that were not finite, dropped where the format allows them (.pcd).
  std::int64_t dropped_points = 0;

  std::int64_t size() const { return positions.rows(); }
};

/// What the networks take: f32 [P, 4] of x, y, z, intensity; intensity is 0 where there is none.
Tensor point_features(const PointCloud& cloud);

}   // namespace pumice
