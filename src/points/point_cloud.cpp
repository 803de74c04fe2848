// Features of points.
#include <pumice/points/point_cloud.hpp>

#include <pumice/core/parallel.hpp>

namespace pumice {

Tensor point_features(const PointCloud& cloud) {
  const std::int64_t points = cloud.size();
  Tensor features({points, 4}, DType::f32);
  const float* position = cloud.positions.data<float>();
  const float* intensity = cloud.intensity.defined() ? cloud.intensity.data<float>() : nullptr;
  PUMICE_EXPECTS(intensity == nullptr || cloud.intensity.elements() == points, "intensity has ",
                 cloud.intensity.elements(), " values for ", points, " points");
  float* row = features.data<float>();
  parallel_for(points, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      for (int axis = 0; axis < 3; ++axis)
        row[4 * i + axis] = position[3 * i + axis];
      row[4 * i + 3] = intensity == nullptr ? 0.0f : intensity[i];
    }
  });
  return features;
}

}   // namespace pumice
