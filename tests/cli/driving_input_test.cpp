// Inputs of the driving benchmarks: columns, limits, and where they come from.
// Covers driving_input and driving_workloads.
#include "cli/driving_input.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/error.hpp>
#include <pumice/points/simulate.hpp>
#include <pumice/points/voxelize.hpp>
#include <pumice/points/write.hpp>

#include "program.hpp"

namespace pumice::cli {
namespace {

using Cell = std::array<std::int32_t, 4>;

std::vector<Cell> cells_of(const Tensor& coordinates) {
  std::vector<Cell> cells(static_cast<std::size_t>(coordinates.rows()));
  for (std::size_t row = 0; row < cells.size(); ++row)
    std::copy_n(coordinates.data<std::int32_t>() + 4 * row, 4, cells[row].begin());
  return cells;
}

void expect_within_the_shape(const DrivingInput& input) {
  const std::vector<Cell> cells = cells_of(input.coordinates);
  EXPECT_EQ(std::set<Cell>(cells.begin(), cells.end()).size(), cells.size());
  for (const Cell& cell : cells) {
    ASSERT_EQ(cell[0], 0);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      ASSERT_GE(cell[axis + 1], 0);
      ASSERT_LT(cell[axis + 1], input.spatial_shape[axis]);
    }
  }
}

class DrivingInputTest : public test::ProgramTest {
 protected:
  std::string written(const PointCloud& cloud) const {
    write_ply(path("scan.ply"), cloud);
    return path("scan.ply");
  }
};

TEST_F(DrivingInputTest, TinyOnesAreFewVoxelsOfEveryWorkload) {
  for (const DrivingWorkload& work : driving_workloads()) {
    SCOPED_TRACE(work.name);
    const DrivingInput input = driving_input(work, "", DrivingSize::tiny, 1);
    EXPECT_GT(input.coordinates.rows(), 200);
    EXPECT_LE(input.coordinates.rows(), 300);
    EXPECT_EQ(input.features.shape(), (Shape{input.coordinates.rows(), work.in_channels}));
    expect_within_the_shape(input);
    if (work.range) {
      EXPECT_EQ(input.spatial_shape, *work.grid);
      continue;
    }
    for (std::size_t axis = 0; axis < 3; ++axis)
      EXPECT_EQ(input.spatial_shape[axis] % 16, 0) << "MinkUNet42 halves it four times";
  }
}

TEST_F(DrivingInputTest, GridsAreThoseOfTheRanges) {
  for (const DrivingWorkload& work : driving_workloads()) {
    ASSERT_EQ(work.range.has_value(), work.grid.has_value());
    if (!work.range) continue;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double extent = (*work.range)[axis + 3] - (*work.range)[axis];
      const double cells = std::round(extent / static_cast<double>(work.voxel[axis]));
      EXPECT_EQ((*work.grid)[axis], cells + (axis == 2 ? 1 : 0)) << work.name;
    }
  }
}

TEST_F(DrivingInputTest, VoxelsAboveTheLimitAreLeftOutAtRandom) {
  const DrivingWorkload& work = find_driving_workload("NS-C-10f");
  const PointCloud cloud =
      simulate({.seed = 3, .sensor = SensorModel::named(work.sensor), .sweeps = work.sweeps});
  const std::string scan = written(cloud);
  const Voxels all =
      voxelize(cloud, point_features(cloud), {.size = work.voxel, .range = work.range});
  ASSERT_GT(all.size(), work.most_voxels);
  const DrivingInput input = driving_input(work, scan, DrivingSize::full, 1);
  ASSERT_EQ(input.coordinates.rows(), work.most_voxels);
  EXPECT_EQ(input.source, "scan.ply");
  expect_within_the_shape(input);
  // Of every tenth of the voxels, in their order, as many stay as of all: within five standard
  // deviations of that many draws.
  const std::vector<Cell> kept = cells_of(input.coordinates);
  const std::set<Cell> stays(kept.begin(), kept.end());
  const std::vector<Cell> before = cells_of(all.coordinates);
  const double share = static_cast<double>(work.most_voxels) / static_cast<double>(all.size());
  const std::size_t part = before.size() / 10;
  std::size_t found = 0;
  for (std::size_t tenth = 0; tenth < 10; ++tenth) {
    const auto begin = before.begin() + static_cast<std::ptrdiff_t>(tenth * part);
    const auto stayed =
        static_cast<double>(std::count_if(begin, begin + static_cast<std::ptrdiff_t>(part),
                                          [&](const Cell& cell) { return stays.contains(cell); }));
    const auto count = static_cast<double>(part);
    EXPECT_NEAR(stayed, share * count, 5 * std::sqrt(count * share * (1 - share)));
    found += static_cast<std::size_t>(stayed);
  }
  EXPECT_GE(found + before.size() - 10 * part, kept.size())
      << "one of them is no voxel of the scan";
  const DrivingInput again = driving_input(work, scan, DrivingSize::full, 1);
  const DrivingInput other = driving_input(work, scan, DrivingSize::full, 2);
  EXPECT_EQ(cells_of(again.coordinates), kept);
  EXPECT_NE(cells_of(other.coordinates), kept);
}

TEST_F(DrivingInputTest, ColumnsAreThoseOfTheScan) {
  PointCloud cloud;
  const float positions[] = {0.5f, 0.5f, 0, 3.5f, -1.5f, 0};
  const float intensity[] = {0.25f, 0.75f}, time[] = {0.05f, 0};
  const std::int32_t ring[] = {7, 31};
  cloud.positions = Tensor::from<float>(positions, {2, 3});
  cloud.intensity = Tensor::from<float>(intensity, {2});
  cloud.time = Tensor::from<float>(time, {2});
  cloud.ring = Tensor::from<std::int32_t>(ring, {2});
  const std::string scan = written(cloud);
  const DrivingInput six =
      driving_input(find_driving_workload("NS-M-3f"), scan, DrivingSize::full, 0);
  ASSERT_EQ(six.features.shape(), (Shape{2, 6}));
  for (std::int64_t row = 0; row < 2; ++row) {
    const float* f = six.features.data<float>() + 6 * row;
    const std::size_t point = f[0] < 2 ? 0 : 1;
    EXPECT_EQ(f[1], positions[3 * point + 1]);
    EXPECT_EQ(f[3], intensity[point]);
    EXPECT_EQ(f[4], static_cast<float>(ring[point]));
    EXPECT_EQ(f[5], time[point]);
  }
  cloud.time = Tensor();
  cloud.ring = Tensor();
  const DrivingInput without =
      driving_input(find_driving_workload("NS-M-3f"), written(cloud), DrivingSize::full, 0);
  for (std::int64_t row = 0; row < 2; ++row) {
    EXPECT_EQ(without.features.data<float>()[6 * row + 4], 0);
    EXPECT_EQ(without.features.data<float>()[6 * row + 5], 0);
  }
  EXPECT_EQ(driving_input(find_driving_workload("SK-M-1x"), scan, DrivingSize::full, 0)
                .features.extent(1),
            4);
}

TEST_F(DrivingInputTest, WaymosRoadIsAtItsHeight) {
  const DrivingInput input =
      driving_input(find_driving_workload("WM-C-1f"), "", DrivingSize::full, 5);
  EXPECT_EQ(input.source, "simulated waymo64, 1 sweep");
  // Within 12 m of the car most of what is hit is the road, in its own frame at 0 m.
  std::vector<float> heights;
  for (std::int64_t row = 0; row < input.features.rows(); ++row) {
    const float* f = input.features.data<float>() + 6 * row;
    if (std::hypot(f[0], f[1]) < 12) heights.push_back(f[2]);
  }
  ASSERT_GT(heights.size(), 1000u);
  std::ranges::nth_element(heights,
                           heights.begin() + static_cast<std::ptrdiff_t>(heights.size() / 2));
  EXPECT_NEAR(heights[heights.size() / 2], 0, 0.2);
}

TEST_F(DrivingInputTest, ScansThatNoNetworkCanTakeAreRefused) {
  PointCloud far;
  const float positions[] = {500, 0, 0, 510, 0, 0};
  far.positions = Tensor::from<float>(positions, {2, 3});
  const std::string scan = written(far);
  EXPECT_THROW(driving_input(find_driving_workload("WM-C-1f"), scan, DrivingSize::full, 0),
               UserError);
  EXPECT_THROW(find_driving_workload("SK-M"), UserError);
}

}   // namespace
}   // namespace pumice::cli
