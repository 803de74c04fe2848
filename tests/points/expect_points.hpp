// Comparing a cloud with the rows it should hold.
#pragma once

#include <gtest/gtest.h>

#include <pumice/points/point_cloud.hpp>

#include "points/scan_bytes.hpp"

namespace pumice::test {

inline constexpr std::int64_t kSizes[] = {0, 1, 31, 33, 65537};

/// Bit for bit: positions, and intensity where `with_intensity`.
inline void expect_points(const PointCloud& cloud, const std::vector<Row>& rows,
                          bool with_intensity = true) {
  ASSERT_EQ(cloud.size(), static_cast<std::int64_t>(rows.size()));
  ASSERT_EQ(cloud.intensity.defined(), with_intensity);
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      wrong += cloud.positions.span<float>()[3 * i + axis] == rows[i][axis] ? 0 : 1;
    }
    if (with_intensity) wrong += cloud.intensity.span<float>()[i] == rows[i][3] ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0) << "of " << rows.size() << " rows";
}

}   // namespace pumice::test
