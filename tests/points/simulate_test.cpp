// The simulator keeps its promises: the same bits, realistic counts, labels that mean something.
#include <pumice/points/simulate.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <numbers>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>

namespace pumice {
namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

bool same_bits(const PointCloud& a, const PointCloud& b) {
  return same_bits(a.positions, b.positions) && same_bits(a.intensity, b.intensity) &&
         same_bits(a.labels, b.labels) && same_bits(a.ring, b.ring) && same_bits(a.time, b.time);
}

struct Threads {   // gives the number of threads back after a test
  ~Threads() { set_threads(0); }
};

const float* position(const PointCloud& cloud, std::int64_t row) {
  return cloud.positions.data<float>() + 3 * row;
}

double range_of(const float* p) {
  return std::sqrt(static_cast<double>(p[0]) * static_cast<double>(p[0]) +
                   static_cast<double>(p[1]) * static_cast<double>(p[1]) +
                   static_cast<double>(p[2]) * static_cast<double>(p[2]));
}

std::uint64_t cell_key(std::int64_t x, std::int64_t y, std::int64_t z) {
  constexpr std::int64_t kBias = 1 << 20;
  return static_cast<std::uint64_t>(((x + kBias) << 42) | ((y + kBias) << 21) | (z + kBias));
}

struct Counts {
  std::int64_t voxels = 0;
  std::int64_t pairs = 0;   // of the 3³ submanifold map, centre included
};

Counts count(const PointCloud& cloud, float voxel) {
  std::unordered_set<std::uint64_t> cells;
  const auto cell = [&](float value) {
    return static_cast<std::int64_t>(std::floor(value / voxel));
  };
  for (std::int64_t row = 0; row < cloud.size(); ++row) {
    const float* p = position(cloud, row);
    cells.insert(cell_key(cell(p[0]), cell(p[1]), cell(p[2])));
  }
  Counts counts{static_cast<std::int64_t>(cells.size()), 0};
  for (const std::uint64_t key : cells) {
    for (std::int64_t x : {-1, 0, 1}) {
      for (std::int64_t y : {-1, 0, 1}) {
        for (std::int64_t z : {-1, 0, 1}) {
          const auto step = static_cast<std::uint64_t>((x << 42) + (y << 21) + z);
          counts.pairs += cells.contains(key + step);
        }
      }
    }
  }
  return counts;
}

TEST(Simulate, CountsAreThoseOfRealStreets) {
  for (const std::uint64_t seed : {0u, 1u, 2u, 3u, 7u, 42u, 20251121u}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const PointCloud cloud = simulate({.seed = seed});
    const Counts counts = count(cloud, 0.05f);
    const double pairs = static_cast<double>(counts.pairs) / static_cast<double>(counts.voxels);
    EXPECT_GE(cloud.size(), 110'000);
    EXPECT_LE(cloud.size(), 125'000);
    EXPECT_GE(counts.voxels, 85'000);
    EXPECT_LE(counts.voxels, 95'000);
    EXPECT_GE(pairs, 3.0);
    EXPECT_LE(pairs, 5.0);
  }
}

TEST(Simulate, TheSameSeedGivesTheSameBits) {
  const SimulationOptions options{.seed = 5, .sensor = SensorModel::beams32(), .sweeps = 2};
  EXPECT_TRUE(same_bits(simulate(options), simulate(options)));
}

TEST(Simulate, AnotherSeedGivesAnotherStreet) {
  const PointCloud a = simulate({.seed = 5});
  const PointCloud b = simulate({.seed = 6});
  EXPECT_FALSE(same_bits(a.positions, b.positions));
  EXPECT_NE(count(a, 0.5f).voxels, count(b, 0.5f).voxels);
}

TEST(Simulate, ThreadsDoNotChangeABit) {
  const Threads restore;
  for (const SimulationOptions& options :
       {SimulationOptions{.seed = 9},
        SimulationOptions{.seed = 9, .sensor = SensorModel::beams32(), .sweeps = 3}}) {
    set_threads(1);
    const PointCloud one = simulate(options);
    set_threads(3);
    EXPECT_TRUE(same_bits(one, simulate(options))) << options.sensor.name;
  }
}

TEST(Simulate, EveryPointLiesOnItsLaserAndWithinRange) {
  for (const SensorModel& sensor :
       {SensorModel::beams64(), SensorModel::beams32(), SensorModel::waymo64()}) {
    SCOPED_TRACE(sensor.name);
    const PointCloud cloud = simulate({.seed = 11, .sensor = sensor});
    ASSERT_GT(cloud.size(), 0);
    for (std::int64_t row = 0; row < cloud.size(); ++row) {
      const float* p = position(cloud, row);
      const double range = range_of(p);
      const auto ring = static_cast<std::size_t>(cloud.ring.data<std::int32_t>()[row]);
      ASSERT_LT(ring, sensor.elevations_deg.size());
      const double elevation =
          std::asin(static_cast<double>(p[2]) / range) * 180 / std::numbers::pi;
      ASSERT_NEAR(elevation, sensor.elevations_deg[ring], 1e-3) << "point " << row;
      ASSERT_GE(range, sensor.min_range_m - 1e-3);
      ASSERT_LE(range, sensor.max_range_m + 1e-3);
      ASSERT_GE(cloud.intensity.data<float>()[row], 0);
      ASSERT_LE(cloud.intensity.data<float>()[row], 1);
    }
    EXPECT_FALSE(cloud.time.defined()) << "one sweep has no time offsets";
  }
}

TEST(Simulate, LabelsAreKnownClassesAndAStreetHasManyOfThem) {
  std::set<std::int32_t> known;
  for (const LabelClass& entry : label_classes())
    known.insert(entry.id);
  std::set<std::int32_t> seen;
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const PointCloud cloud = simulate({.seed = seed});
    for (const std::int32_t label : cloud.labels.span<std::int32_t>())
      seen.insert(label);
  }
  for (const std::int32_t label : seen)
    EXPECT_TRUE(known.contains(label)) << label;
  // Road, pavement, house, car, moving car, pole, sign, leaves, trunk, open ground, fence, people.
  for (const std::int32_t label : {40, 48, 50, 10, 252, 80, 81, 70, 71, 72, 51, 254}) {
    EXPECT_TRUE(seen.contains(label)) << label_name(label);
  }
  EXPECT_EQ(label_name(40), "road");
  EXPECT_EQ(label_name(252), "moving-car");
  EXPECT_EQ(label_name(17), "class 17");
}

TEST(Simulate, TheRoadLiesBelowTheSensorAndHousesStandOnTheGround) {
  const PointCloud cloud = simulate({.seed = 4});
  double lowest_house = 0;
  for (std::int64_t row = 0; row < cloud.size(); ++row) {
    const float* p = position(cloud, row);
    const std::int32_t label = cloud.labels.data<std::int32_t>()[row];
    if (label == 40 && range_of(p) < 8) {
      ASSERT_NEAR(p[2], -1.73, 0.2) << "point " << row;
    }
    if (label == 50) lowest_house = std::min(lowest_house, static_cast<double>(p[2]));
  }
  EXPECT_LT(lowest_house, -0.5);
  EXPECT_GT(lowest_house, -2.5);
}

TEST(Simulate, TenSweepsHaveTenTimesThePointsAndSayHowOldTheyAre) {
  SimulationOptions options{.seed = 2, .sensor = SensorModel::beams32()};
  const PointCloud one = simulate(options);
  options.sweeps = 10;
  const PointCloud ten = simulate(options);
  const double ratio = static_cast<double>(ten.size()) / static_cast<double>(one.size());
  EXPECT_NEAR(ratio, 10, 0.5);
  EXPECT_GE(ten.size(), 240'000);
  EXPECT_LE(ten.size(), 310'000);

  std::set<float> ages(ten.time.span<float>().begin(), ten.time.span<float>().end());
  ASSERT_EQ(ages.size(), 10u);
  EXPECT_EQ(*ages.begin(), 0.0f);
  EXPECT_NEAR(*ages.rbegin(), 0.45, 1e-6);
  EXPECT_TRUE(std::ranges::is_sorted(ten.time.span<float>(), std::ranges::greater{}));
  // The last sweep is the single one, point for point.
  const std::int64_t before = ten.size() - one.size();
  EXPECT_EQ(0, std::memcmp(position(ten, before), one.positions.raw(), one.positions.bytes()));
}

/// The share of the points with `label` in the oldest sweep that lie within `reach` of one in the
/// newest.
double share_met_again(const PointCloud& cloud, std::int32_t label, float reach) {
  const float oldest = cloud.time.data<float>()[0];
  std::vector<const float*> old_points, new_points;
  for (std::int64_t row = 0; row < cloud.size(); ++row) {
    if (cloud.labels.data<std::int32_t>()[row] != label) continue;
    const float* p = position(cloud, row);
    if (range_of(p) > 25) continue;
    const float age = cloud.time.data<float>()[row];
    if (age == oldest) old_points.push_back(p);
    if (age == 0) new_points.push_back(p);
  }
  std::int64_t met = 0;
  for (const float* a : old_points) {
    met += std::ranges::any_of(
        new_points, [&](const float* b) { return std::hypot(a[0] - b[0], a[1] - b[1]) < reach; });
  }
  return static_cast<double>(met) /
         static_cast<double>(std::max<std::size_t>(old_points.size(), 1));
}

TEST(Simulate, SweepsMeetInTheFrameOfTheLastOne) {
  // The car drives 2 m and more in ten sweeps; trunks, which stand still, must not.
  const PointCloud cloud = simulate({.seed = 2, .sensor = SensorModel::beams32(), .sweeps = 10});
  EXPECT_GT(share_met_again(cloud, 71, 0.4f), 0.8);
}

TEST(Simulate, WaymosSensorSeesAsMuchAsItsFramesHold) {
  const SensorModel sensor = SensorModel::waymo64();
  EXPECT_EQ(sensor.elevations_deg.size(), 64u);
  EXPECT_NEAR(sensor.elevations_deg.front(), 2.4, 1e-12);
  EXPECT_NEAR(sensor.elevations_deg.back(), -17.6, 1e-12);
  EXPECT_EQ(sensor.columns, 2650);
  EXPECT_EQ(sensor.turns_per_s, 10);
  for (const std::uint64_t seed : {0u, 1u, 7u}) {
    const PointCloud cloud = simulate({.seed = seed, .sensor = sensor, .sweeps = 3});
    EXPECT_EQ(std::set<float>(cloud.time.span<float>().begin(), cloud.time.span<float>().end()),
              (std::set<float>{0, 0.1f, 0.2f}));
    // Its frames hold 140,000 to 170,000 returns of this laser; a street has less sky than most.
    EXPECT_GE(cloud.size(), 3 * 120'000) << seed;
    EXPECT_LE(cloud.size(), 3 * 169'600) << seed << ": more than it fires";
  }
}

TEST(Simulate, SensorsHaveNames) {
  for (const SensorModel& sensor :
       {SensorModel::beams64(), SensorModel::beams32(), SensorModel::waymo64()}) {
    const SensorModel same = SensorModel::named(sensor.name);
    EXPECT_EQ(same.name, sensor.name);
    EXPECT_EQ(same.elevations_deg, sensor.elevations_deg);
    EXPECT_EQ(same.columns, sensor.columns);
  }
  try {
    (void)SensorModel::named("beams16");
    ADD_FAILURE() << "there is no such sensor";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "sensor = \"beams16\": there are beams64, beams32, waymo64");
  }
}

TEST(Simulate, AStrangeSensorIsServedToo) {
  SensorModel sensor = SensorModel::beams64();
  sensor.elevations_deg = {-5};
  for (const int columns : {1, 31, 33}) {
    sensor.columns = columns;
    const PointCloud cloud = simulate({.seed = 1, .sensor = sensor});
    EXPECT_LE(cloud.size(), columns);
    EXPECT_EQ(cloud.labels.rows(), cloud.size());
  }
  sensor.elevations_deg = {89};   // the sky
  EXPECT_EQ(simulate({.seed = 1, .sensor = sensor}).size(), 0);
}

TEST(Simulate, OptionsThatDescribeNoSensorAreRefused) {
  const auto refused = [](auto change, const char* name) {
    SimulationOptions options;
    change(options);
    try {
      simulate(options);
      ADD_FAILURE() << name << " was accepted";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  };
  refused([](auto& o) { o.sweeps = 0; }, "sweeps = 0");
  refused([](auto& o) { o.sweeps = -3; }, "sweeps = -3");
  refused([](auto& o) { o.sweeps = 101; }, "sweeps = 101");
  refused([](auto& o) { o.sensor.columns = 0; }, "sensor.columns = 0");
  refused([](auto& o) { o.sensor.elevations_deg.clear(); }, "sensor.elevations_deg");
  refused([](auto& o) { o.sensor.elevations_deg[3] = 90; }, "sensor.elevations_deg");
  refused([](auto& o) { o.sensor.max_range_m = 1; }, "sensor range");
  refused([](auto& o) { o.sensor.height_m = std::numeric_limits<double>::quiet_NaN(); },
          "sensor.height_m");
  refused([](auto& o) { o.sensor.turns_per_s = 0; }, "sensor.turns_per_s");
  refused([](auto& o) { o.sensor.range_deviation_m = -1; }, "sensor.range_deviation_m");
  refused(
      [](auto& o) {
        o.sensor.columns = 65536;
        o.sweeps = 100;
      },
      "the sensor fires 419430400 times");
}

}   // namespace
}   // namespace pumice
