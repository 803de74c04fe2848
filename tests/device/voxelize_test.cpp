// Voxels made by device code beside those of the CPU, bit for bit.
#include "coords/cuda/voxelize.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/random.hpp>
#include <pumice/points/voxelize.hpp>

#include "device/device_sets.hpp"

namespace pumice::test {
namespace {

struct Clouds {
  std::vector<PointCloud> clouds;
  std::vector<Tensor> features;

  std::vector<FeaturedCloud> featured() const {
    std::vector<FeaturedCloud> result;
    for (std::size_t i = 0; i < clouds.size(); ++i)
      result.push_back({&clouds[i], features[i]});
    return result;
  }
};

Clouds random_clouds(const std::vector<std::int64_t>& sizes, std::int64_t channels, float extent) {
  Random random(static_cast<std::uint64_t>(channels));
  Clouds all;
  for (const std::int64_t size : sizes) {
    PointCloud cloud;
    cloud.positions = Tensor({size, 3}, DType::f32);
    Tensor features({size, channels}, DType::f32);
    for (float& value : cloud.positions.span<float>())
      value = static_cast<float>(random.uniform(-extent, extent));
    for (float& value : features.span<float>())
      value = static_cast<float>(random.normal() * 100);
    all.clouds.push_back(std::move(cloud));
    all.features.push_back(std::move(features));
  }
  return all;
}

/// The points of all clouds, one after the other, where kernels can read them.
struct OnDevice {
  OnDevice(const TestRunner& runner, const Clouds& clouds) {
    std::vector<float> all_positions;
    std::vector<float> all_features;
    std::vector<std::int64_t> all_begin = {0};
    for (std::size_t i = 0; i < clouds.clouds.size(); ++i) {
      const auto values = clouds.clouds[i].positions.span<float>();
      all_positions.insert(all_positions.end(), values.begin(), values.end());
      const auto mine = clouds.features[i].span<float>();
      all_features.insert(all_features.end(), mine.begin(), mine.end());
      all_begin.push_back(all_begin.back() + clouds.clouds[i].size());
    }
    positions = runner.copy(std::span<const float>(all_positions));
    features = runner.copy(std::span<const float>(all_features));
    begin = runner.copy(std::span<const std::int64_t>(all_begin));
    count = runner.count(all_begin.back());
    points = {.positions = positions.data(),
              .count = {count.data(), all_begin.back()},
              .cloud_begin = begin.data(),
              .clouds = static_cast<std::int32_t>(clouds.clouds.size()),
              .features = features.data(),
              .channels = static_cast<std::int32_t>(clouds.features[0].extent(1))};
  }
  Buffer<float> positions;
  Buffer<float> features;
  Buffer<std::int64_t> begin;
  Buffer<std::int64_t> count;
  cuda::DevicePoints points;
};

void expect_same_voxels(const cuda::DeviceVoxels& device, const Voxels& cpu,
                        const CoordinateSet& set) {
  expect_same_set(device.sets[0].ref(), set);
  const auto point_to_voxel = cpu.point_to_voxel.span<std::int64_t>();
  EXPECT_TRUE(
      std::equal(point_to_voxel.begin(), point_to_voxel.end(), device.point_to_voxel.data()));
  if (cpu.size() == 0) return;
  EXPECT_EQ(std::memcmp(device.features.data(), cpu.features.raw(), cpu.features.bytes()), 0);
  const auto begin = cpu.voxel_begin.span<std::int64_t>();
  EXPECT_TRUE(std::equal(begin.begin(), begin.end(), device.voxel_begin.data()));
  const auto members = cpu.voxel_points.span<std::int64_t>();
  EXPECT_TRUE(std::equal(members.begin(), members.end(), device.voxel_points.data()));
}

PUMICE_DEVICE_TEST(DeviceVoxelize, VoxelsAreThoseOfTheCpu) {
  constexpr std::pair<PointReduction, Reduction> kReductions[] = {
      {PointReduction::first, Reduction::first},
      {PointReduction::mean, Reduction::mean},
      {PointReduction::max, Reduction::max},
      {PointReduction::sum, Reduction::sum}};
  for (const auto& [on_device, on_cpu] : kReductions) {
    for (const bool ranged : {false, true}) {
      const Clouds clouds = random_clouds({1700, 0, 900}, 5, 3.0f);
      VoxelOptions options{.size = {0.3f, 0.25f, 0.5f}, .reduction = on_cpu};
      if (ranged) options.range = {-2.0f, -1.5f, -2.5f, 2.0f, 2.5f, 1.0f};
      const Voxels cpu = voxelize_batch(clouds.featured(), options);
      const auto set = CoordinateSet::create(cpu.coordinates, {.batch_size = 3});
      const auto runner = make_runner();
      const OnDevice points(*runner, clouds);
      const auto voxels = cuda::voxelize(*runner, points.points,
                                         {.size = options.size,
                                          .range = options.range,
                                          .reduction = on_device,
                                          .layout = set->layout(),
                                          .capacities = {cuda::capacity_for_rows(cpu.size() + 9)}});
      EXPECT_EQ(runner->record().code, kFine);
      expect_same_voxels(voxels, cpu, *set);
    }
  }
}

/// Instead of clouds one after the other: the cloud of each point, clouds all mixed.
PUMICE_DEVICE_TEST(DeviceVoxelize, APointSaysItsCloud) {
  const Clouds clouds = random_clouds({500, 700}, 2, 3.0f);
  const VoxelOptions options{.size = {0.5f, 0.5f, 0.5f}};
  const Voxels cpu = voxelize_batch(clouds.featured(), options);
  const auto set = CoordinateSet::create(cpu.coordinates, {.batch_size = 2});
  Clouds mixed;   // point i of it is point order[i] of all clouds
  mixed.clouds.emplace_back();
  mixed.clouds[0].positions = Tensor({1200, 3}, DType::f32);
  mixed.features.push_back(Tensor::zeros({1200, 2}, DType::f32));
  std::vector<std::int32_t> cloud_of(1200);
  std::vector<std::int64_t> order(1200);
  for (std::size_t i = 0; i < 1200; ++i) {
    order[i] = static_cast<std::int64_t>(i * 7 % 1200);
    const bool second = order[i] >= 500;
    cloud_of[i] = second ? 1 : 0;
    const float* const from =
        clouds.clouds[second ? 1 : 0].positions.data<float>() + 3 * (order[i] - (second ? 500 : 0));
    std::copy_n(from, 3, mixed.clouds[0].positions.data<float>() + 3 * i);
  }
  for (const bool shaped : {false, true}) {
    const auto runner = make_runner();
    OnDevice points(*runner, mixed);
    const auto items = runner->copy(std::span<const std::int32_t>(cloud_of));
    points.points.cloud_begin = nullptr;
    points.points.batch = items.data();
    points.points.clouds = 2;
    const auto voxels =
        cuda::voxelize(*runner, points.points,
                       {.size = options.size,
                        .shape = shaped ? std::optional<Axes>(Axes{4, 3, 6}) : std::nullopt,
                        .layout = set->layout(),
                        .capacities = {cuda::capacity_for_rows(cpu.size())}});
    EXPECT_EQ(runner->record().code, kFine);
    const auto* const cells = cpu.coordinates.data<std::int32_t>();
    std::vector<bool> kept(static_cast<std::size_t>(cpu.size()));
    for (std::size_t row = 0; row < kept.size(); ++row) {
      const std::int32_t* const cell = cells + 4 * row;
      kept[row] = !shaped || (cell[1] >= 0 && cell[1] < 4 && cell[2] >= 0 && cell[2] < 3 &&
                              cell[3] >= 0 && cell[3] < 6);
    }
    EXPECT_EQ(*voxels.sets[0].rows().count, std::count(kept.begin(), kept.end(), true));
    for (std::size_t i = 0; i < 1200; ++i) {
      const auto row = static_cast<std::size_t>(cpu.point_to_voxel.data<std::int64_t>()[order[i]]);
      const auto before = std::count(kept.begin(), kept.begin() + static_cast<long>(row), true);
      EXPECT_EQ(voxels.point_to_voxel[static_cast<std::int64_t>(i)], kept[row] ? before : -1);
    }
  }
}

PUMICE_DEVICE_TEST(DeviceVoxelize, ACloudThatThereIsNotIsNamed) {
  const KeyLayout layout =
      CoordinateSet::create(tensor_of({{0, -9, -9, -9}, {1, 9, 9, 9}}, 3))->layout();
  for (const std::int32_t bad : {-1, 2}) {
    const auto runner = make_runner();
    OnDevice points(*runner, random_clouds({50}, 2, 1.0f));
    std::vector<std::int32_t> cloud_of(50, 1);
    cloud_of[20] = bad;
    const auto items = runner->copy(std::span<const std::int32_t>(cloud_of));
    points.points.batch = items.data();
    points.points.clouds = 2;
    const auto voxels = cuda::voxelize(*runner, points.points,
                                       {.size = {0.5f, 0.5f, 0.5f},
                                        .layout = layout,
                                        .capacities = {cuda::capacity_for_rows(50)}});
    EXPECT_EQ(runner->record().code, kOutsideLayout);
    EXPECT_EQ(runner->record().row, 20);
  }
}

PUMICE_DEVICE_TEST(DeviceVoxelize, SizesOfEveryKind) {
  for (const std::int64_t size : {0, 1, 31, 33}) {
    const Clouds clouds = random_clouds({size}, 3, 1.0f);
    const VoxelOptions options{.size = {0.5f, 0.5f, 0.5f}};
    const Voxels cpu = voxelize_batch(clouds.featured(), options);
    const auto set = CoordinateSet::create(cpu.coordinates, {.batch_size = 1});
    const auto runner = make_runner();
    const OnDevice points(*runner, clouds);
    const auto voxels = cuda::voxelize(*runner, points.points,
                                       {.size = options.size,
                                        .layout = set->layout(),
                                        .capacities = {cuda::capacity_for_rows(40)}});
    expect_same_voxels(voxels, cpu, *set);
  }
}

PUMICE_DEVICE_TEST(DeviceVoxelize, APointWithoutACellIsNamed) {
  const KeyLayout layout =
      CoordinateSet::create(tensor_of({{0, -9, -9, -9}, {0, 9, 9, 9}}, 3))->layout();
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(), 1e30f, 1e6f}) {
    Clouds clouds = random_clouds({50}, 2, 1.0f);
    clouds.clouds[0].positions.data<float>()[3 * 17 + 1] = bad;
    const auto runner = make_runner();
    const OnDevice points(*runner, clouds);
    const auto voxels = cuda::voxelize(*runner, points.points,
                                       {.size = {0.5f, 0.5f, 0.5f},
                                        .layout = layout,
                                        .capacities = {cuda::capacity_for_rows(50)}});
    EXPECT_EQ(runner->record().code, kOutsideLayout);
    EXPECT_EQ(runner->record().needed, 1);
    EXPECT_EQ(runner->record().row, 17);
    EXPECT_TRUE(voxels.sets[0].rows().poisoned());
    EXPECT_TRUE(std::all_of(voxels.features.data(), voxels.features.data() + 100,
                            [](float value) { return std::isnan(value); }));
  }
}

PUMICE_DEVICE_TEST(DeviceVoxelize, PoisonGoesOn) {
  const KeyLayout layout = CoordinateSet::create(tensor_of({{0, 0, 0, 0}}, 3))->layout();
  const Clouds clouds = random_clouds({50}, 2, 1.0f);
  const auto runner = make_runner();
  OnDevice points(*runner, clouds);
  points.count[0] = 51;
  const auto voxels = cuda::voxelize(
      *runner, points.points,
      {.size = {0.5f, 0.5f, 0.5f}, .layout = layout, .capacities = {cuda::capacity_for_rows(50)}});
  EXPECT_EQ(runner->record().code, kPoisonedInput);
  EXPECT_EQ(*voxels.sets[0].rows().count, kPoison);
}

}   // namespace
}   // namespace pumice::test
