// Voxelisation against a map filled point by point, its edges, its errors, and known counts.
#include <pumice/points/voxelize.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/key_layout.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/core/random.hpp>
#include <pumice/points/read.hpp>

#include "support/data.hpp"
#include "support/message_of.hpp"

namespace pumice {
namespace {

using namespace test;

PointCloud cloud_at(const std::vector<float>& positions) {
  PointCloud cloud;
  cloud.positions = Tensor::from(std::span<const float>(positions),
                                 {static_cast<std::int64_t>(positions.size()) / 3, 3});
  return cloud;
}

/// Points in a box about the origin, many to a voxel, and features to go with them.
struct RandomCloud {
  PointCloud cloud;
  Tensor features;
};
RandomCloud random_cloud(std::int64_t points, std::int64_t channels, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> positions;
  for (std::int64_t i = 0; i < 3 * points; ++i) {
    positions.push_back(static_cast<float>(random.uniform(-1.5, 1.5)));
  }
  RandomCloud result{cloud_at(positions), Tensor({points, channels}, DType::f32)};
  for (float& value : result.features.span<float>()) {
    value = static_cast<float>(random.uniform(-10, 10));
  }
  return result;
}

using Cell = std::array<std::int32_t, 4>;

/// The reference: a map from cell to its points, in double where the library rounds only once.
struct Expected {
  std::map<Cell, std::vector<std::int64_t>> members;
  std::vector<Cell> cell_of;   // batch -1 for a point out of range
};
Expected expected_voxels(const std::vector<RandomCloud>& clouds, const VoxelOptions& options) {
  Expected expected;
  std::int64_t index = 0;
  for (std::size_t b = 0; b < clouds.size(); ++b) {
    const auto positions = clouds[b].cloud.positions.span<float>();
    for (std::size_t i = 0; i < positions.size(); i += 3, ++index) {
      Cell cell{static_cast<std::int32_t>(b), 0, 0, 0};
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const float p = positions[i + axis];
        const float origin = options.range ? (*options.range)[axis] : 0.0f;
        if (options.range && (p < origin || p >= (*options.range)[axis + 3])) cell[0] = -1;
        cell[axis + 1] = static_cast<std::int32_t>(std::floor((p - origin) / options.size[axis]));
      }
      expected.cell_of.push_back(cell);
      if (cell[0] >= 0) expected.members[cell].push_back(index);
    }
  }
  return expected;
}

float reduced(const std::vector<float>& values, Reduction reduction) {
  if (reduction == Reduction::first) return values[0];
  if (reduction == Reduction::max) return *std::max_element(values.begin(), values.end());
  double sum = 0.0;
  for (const float value : values)
    sum += value;
  if (reduction == Reduction::mean) sum /= static_cast<double>(values.size());
  return static_cast<float>(sum);
}

void expect_voxels(const std::vector<RandomCloud>& clouds, const VoxelOptions& options) {
  std::vector<FeaturedCloud> batch;
  std::vector<float> all;   // features of all clouds
  for (const RandomCloud& item : clouds) {
    batch.push_back({&item.cloud, item.features});
    const auto values = item.features.span<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  const Voxels voxels = voxelize_batch(batch, options);
  const Expected expected = expected_voxels(clouds, options);
  const auto channels = static_cast<std::size_t>(clouds[0].features.extent(1));

  ASSERT_EQ(voxels.size(), static_cast<std::int64_t>(expected.members.size()));
  const auto rows = voxels.coordinates.span<std::int32_t>();
  const auto begin = voxels.voxel_begin.span<std::int64_t>();
  const auto points = voxels.voxel_points.span<std::int64_t>();
  for (std::size_t n = 0; n < expected.members.size(); ++n) {
    const Cell cell{rows[4 * n], rows[4 * n + 1], rows[4 * n + 2], rows[4 * n + 3]};
    ASSERT_TRUE(expected.members.contains(cell));
    const std::vector<std::int64_t>& members = expected.members.at(cell);
    ASSERT_EQ(std::vector<std::int64_t>(points.begin() + begin[n], points.begin() + begin[n + 1]),
              members);
    for (std::size_t c = 0; c < channels; ++c) {
      std::vector<float> values;
      for (const std::int64_t point : members) {
        values.push_back(all[static_cast<std::size_t>(point) * channels + c]);
      }
      ASSERT_EQ(voxels.features.span<float>()[n * channels + c],
                reduced(values, options.reduction));
    }
  }
  const auto voxel_of = voxels.point_to_voxel.span<std::int64_t>();
  ASSERT_EQ(voxel_of.size(), expected.cell_of.size());
  for (std::size_t i = 0; i < voxel_of.size(); ++i) {
    if (expected.cell_of[i][0] < 0) {
      ASSERT_EQ(voxel_of[i], -1);
    } else {
      const auto n = static_cast<std::size_t>(voxel_of[i]);
      ASSERT_EQ((Cell{rows[4 * n], rows[4 * n + 1], rows[4 * n + 2], rows[4 * n + 3]}),
                expected.cell_of[i]);
    }
  }
}

TEST(Voxelising, GivesWhatAMapGivesForEveryReductionAndSize) {
  for (const std::int64_t points : {0, 1, 31, 33, 65537}) {
    for (const Reduction reduction :
         {Reduction::first, Reduction::mean, Reduction::max, Reduction::sum}) {
      expect_voxels({random_cloud(points, 5, 1)},
                    {.size = {0.1f, 0.2f, 0.15f}, .range = {}, .reduction = reduction});
    }
  }
}

TEST(Voxelising, TakesAnyNumberOfChannels) {
  for (const std::int64_t channels : {0, 1, 3, 4, 64, 65}) {
    expect_voxels({random_cloud(1000, channels, 2)}, {.size = {0.5f, 0.5f, 0.5f}, .range = {}});
  }
}

TEST(Voxelising, MakesABatchOfSeveralClouds) {
  expect_voxels({random_cloud(5000, 4, 1), random_cloud(0, 4, 2), random_cloud(7, 4, 3),
                 random_cloud(9000, 4, 4)},
                {.size = {0.2f, 0.2f, 0.2f}, .range = {}});
  expect_voxels({random_cloud(0, 4, 1), random_cloud(0, 4, 2)},
                {.size = {0.2f, 0.2f, 0.2f}, .range = {}});
}

TEST(Voxelising, LeavesOutWhatIsOutOfRange) {
  for (const std::int64_t points : {0, 1, 33, 65537}) {
    expect_voxels({random_cloud(points, 4, 5), random_cloud(100, 4, 6)},
                  {.size = {0.1f, 0.1f, 0.1f},
                   .range = std::array<float, 6>{-1.0f, -0.5f, 0.0f, 1.0f, 0.25f, 1.0f}});
  }
  expect_voxels({random_cloud(1000, 4, 5)},
                {.size = {0.1f, 0.1f, 0.1f},
                 .range = std::array<float, 6>{50.0f, 50.0f, 50.0f, 51.0f, 51.0f, 51.0f}});
}

TEST(Voxelising, FloorsBelowZeroAndHalvesIntervalsOpenAbove) {
  const PointCloud cloud = cloud_at({-0.1f, 0.0f, 0.1f, -1.0f, 1.0f, 2.0f, 2.0f, 0.0f, 0.0f});
  const Tensor features = point_features(cloud);
  const Voxels unbounded = voxelize(cloud, features, {.size = {1.0f, 1.0f, 1.0f}, .range = {}});
  const auto rows = unbounded.coordinates.span<std::int32_t>();
  const auto voxel = static_cast<std::size_t>(unbounded.point_to_voxel.span<std::int64_t>()[0]);
  EXPECT_EQ(rows[4 * voxel + 1], -1);
  const Voxels bounded =
      voxelize(cloud, features,
               {.size = {1.0f, 1.0f, 1.0f},
                .range = std::array<float, 6>{-1.0f, 0.0f, 0.0f, 2.0f, 2.0f, 2.0f}});
  const auto kept = bounded.point_to_voxel.span<std::int64_t>();
  EXPECT_GE(kept[0], 0);
  EXPECT_EQ(kept[1], -1) << "z = 2 is the open end";
  EXPECT_EQ(kept[2], -1) << "x = 2 is the open end";
}

TEST(Voxelising, FloorsEveryKindOfNumber) {
  std::vector<float> xs{0.0f,         -0.0f,           1.0f,      -1.0f,       0.99999994f,
                        -0.99999994f, 1e-38f,          -1e-38f,   1e-45f,      -1e-45f,
                        8388607.5f,   -8388607.5f,     8388608.f, -16777216.f, 0x1p31f - 128.f,
                        -0x1p31f,     -0x1p31f + 128.f};
  Random random(21);
  for (int i = 0; i < 5000; ++i) {
    const double magnitude = std::exp2(random.uniform(-20, 30.9));
    xs.push_back(static_cast<float>(random.uniform(-1, 1) < 0 ? -magnitude : magnitude));
  }
  std::vector<float> positions;
  for (const float x : xs)
    positions.insert(positions.end(), {x, 0.5f, -0.5f});
  const PointCloud cloud = cloud_at(positions);
  const Voxels voxels =
      voxelize(cloud, point_features(cloud), {.size = {1.0f, 1.0f, 1.0f}, .range = {}});
  const auto rows = voxels.coordinates.span<std::int32_t>();
  for (std::size_t point = 0; point < xs.size(); ++point) {
    const auto voxel = static_cast<std::size_t>(voxels.point_to_voxel.span<std::int64_t>()[point]);
    ASSERT_EQ(static_cast<double>(rows[4 * voxel + 1]), std::floor(xs[point])) << xs[point];
    ASSERT_EQ(rows[4 * voxel + 2], 0);
    ASSERT_EQ(rows[4 * voxel + 3], -1);
  }
}

TEST(Voxelising, OrdersVoxelsByKey) {
  const RandomCloud item = random_cloud(5000, 4, 8);
  const Voxels voxels =
      voxelize(item.cloud, item.features, {.size = {0.1f, 0.1f, 0.1f}, .range = {}});
  std::int64_t low[3] = {0, 0, 0}, high[3] = {0, 0, 0};
  const auto rows = voxels.coordinates.span<std::int32_t>();
  for (std::size_t i = 0; i < rows.size(); i += 4) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      low[axis] = std::min<std::int64_t>(low[axis], rows[i + 1 + axis]);
      high[axis] = std::max<std::int64_t>(high[axis], rows[i + 1 + axis]);
    }
  }
  const KeyLayout layout = layout_for_bounds(3, low, high, 1);
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < rows.size(); i += 4) {
    const std::uint64_t key = encode_key(layout, 0, &rows[i + 1]);
    ASSERT_TRUE(i == 0 || key > before);
    before = key;
  }
}

TEST(Voxelising, GivesTheSameBitsForOneAndManyThreads) {
  const RandomCloud item = random_cloud(100000, 4, 9);
  const VoxelOptions options{.size = {0.05f, 0.05f, 0.05f}, .range = {}};
  set_threads(1);
  const Voxels one = voxelize(item.cloud, item.features, options);
  set_threads(4);
  const Voxels four = voxelize(item.cloud, item.features, options);
  set_threads(0);
  const auto same = [](const Tensor& a, const Tensor& b) {
    return a.bytes() == b.bytes() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
  };
  EXPECT_TRUE(same(one.coordinates, four.coordinates));
  EXPECT_TRUE(same(one.features, four.features));
  EXPECT_TRUE(same(one.point_to_voxel, four.point_to_voxel));
  EXPECT_TRUE(same(one.voxel_points, four.voxel_points));
}

TEST(Voxelising, KeepsANaNFeatureVisible) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const PointCloud cloud = cloud_at({0, 0, 0, 0, 0, 0, 0, 0, 0});
  const std::vector<float> values{1, nan, 2};
  const Tensor features = Tensor::from(std::span<const float>(values), {3, 1});
  for (const Reduction reduction : {Reduction::mean, Reduction::max, Reduction::sum}) {
    const Voxels voxels = voxelize(
        cloud, features, {.size = {1.0f, 1.0f, 1.0f}, .range = {}, .reduction = reduction});
    EXPECT_TRUE(std::isnan(voxels.features.span<float>()[0])) << name_of(reduction);
  }
}

std::string complaint(const std::vector<float>& positions, const VoxelOptions& options) {
  const PointCloud cloud = cloud_at(positions);
  return message_of([&] { voxelize(cloud, point_features(cloud), options); });
}

TEST(Voxelising, SaysWhatIsWrong) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const VoxelOptions fine{.size = {0.1f, 0.1f, 0.1f}, .range = {}};
  EXPECT_EQ(complaint({0, 0, 0}, {.size = {0.1f, 0.0f, 0.1f}, .range = {}}),
            "voxel size along y = 0; give a positive number of metres");
  EXPECT_EQ(complaint({0, 0, 0}, {.size = {0.1f, 0.1f, nan}, .range = {}}),
            "voxel size along z = nan; give a positive number of metres");
  EXPECT_EQ(complaint({0, 0, 0}, {.size = {-1.0f, 0.1f, 0.1f}, .range = {}}),
            "voxel size along x = -1; give a positive number of metres");
  EXPECT_EQ(complaint({0, 0, 0}, {.size = {0.1f, 0.1f, 0.1f},
                                  .range = std::array<float, 6>{0, 0, 0, 1, 0, 1}}),
            "range along y = [0, 0), which is empty; give x0 y0 z0 x1 y1 z1 in metres, each low "
            "below its high");
  EXPECT_EQ(complaint({0, 0, 0, 0, nan, 0}, fine),
            "point 1 of cloud 0 is at (0, nan, 0), which is not finite; drop such points before "
            "voxelising");
  EXPECT_EQ(complaint({0, 0, 0, 0, 0, 3e9f}, fine),
            "point 1 of cloud 0 has z = 3e+09 m, which is cell 3e+10 at 0.1 m a voxel and does not "
            "fit 32 bits; use larger voxels or give a range");
  EXPECT_EQ(complaint({0, 0, 0, 1e8f, 1e8f, 1e8f}, fine).substr(0, 48),
            "coordinates span 1000000001 x 1000000001 x 10000");
}

TEST(Voxelising, IgnoresFarPointsThatARangeLeavesOut) {
  const PointCloud cloud = cloud_at({0.5f, 0.5f, 0.5f, 3e9f, 0, 0});
  const Voxels voxels =
      voxelize(cloud, point_features(cloud),
               {.size = {0.1f, 0.1f, 0.1f}, .range = std::array<float, 6>{0, 0, 0, 1, 1, 1}});
  EXPECT_EQ(voxels.size(), 1);
  EXPECT_EQ(voxels.point_to_voxel.span<std::int64_t>()[1], -1);
}

TEST(Voxelising, RefusesFeaturesOfOtherPoints) {
  const PointCloud cloud = cloud_at({0, 0, 0});
  EXPECT_EQ(message_of([&] {
              voxelize(cloud, Tensor::zeros({2, 4}, DType::f32),
                       {.size = {1.0f, 1.0f, 1.0f}, .range = {}});
            }),
            "features of cloud 0 have shape [2, 4] f32; expected [1, C] f32");
  EXPECT_EQ(message_of([&] {
              voxelize_batch({}, {.size = {1.0f, 1.0f, 1.0f}, .range = {}});
            }),
            "voxelise: there is no cloud; give at least one");
}

TEST(Reductions, GoByName) {
  for (const Reduction reduction :
       {Reduction::first, Reduction::mean, Reduction::max, Reduction::sum}) {
    EXPECT_EQ(parse_reduction(name_of(reduction)), reduction);
  }
  EXPECT_EQ(message_of([] { parse_reduction("median"); }),
            "reduction = \"median\"; choose first, mean, max or sum");
}

TEST(PointFeatures, HaveZeroForAMissingIntensity) {
  PointCloud cloud = cloud_at({1, 2, 3, 4, 5, 6});
  const std::vector<float> without{1, 2, 3, 0, 4, 5, 6, 0};
  EXPECT_TRUE(std::ranges::equal(point_features(cloud).span<float>(), without));
  cloud.intensity = Tensor::full({2}, DType::f32, 0.5);
  const std::vector<float> with{1, 2, 3, 0.5f, 4, 5, 6, 0.5f};
  EXPECT_TRUE(std::ranges::equal(point_features(cloud).span<float>(), with));
}

TEST(RealScans, HaveTheKnownNumberOfVoxels) {
  PUMICE_NEEDS_DATA(kitti, "lidar/semantickitti/seq00_000000.bin");
  PUMICE_NEEDS_DATA(spconv, "lidar/other/spconv_benchmark_cloud.npz");
  const PointCloud frame = read_points(kitti);
  EXPECT_EQ(
      voxelize(frame, point_features(frame), {.size = {0.05f, 0.05f, 0.05f}, .range = {}}).size(),
      91767);
  const PointCloud cloud = read_points(spconv);
  const VoxelOptions options{.size = {0.1f, 0.1f, 0.1f},
                             .range = std::array<float, 6>{-80, -80, -2, 80, 80, 6}};
  EXPECT_EQ(voxelize(cloud, point_features(cloud), options).size(), 125562);
}

}   // namespace
}   // namespace pumice
