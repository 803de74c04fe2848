// The cells of points as a coordinate set, beside `voxelize`, on the CPU and on a GPU.
#include <pumice/coords/voxel_sites.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/points/voxelize.hpp>

#include "coords/cells.hpp"
#include "support/gpu.hpp"

namespace pumice::test {
namespace {

/// [P, columns], of which x, y, z are within `extent` of 0.
Tensor random_points(std::int64_t count, std::int64_t columns, float extent) {
  Tensor points({count, columns}, DType::f32);
  Random random(static_cast<std::uint64_t>(count));
  for (float& value : points.span<float>())
    value = static_cast<float>(random.uniform(-extent, extent));
  return points;
}

PointCloud cloud_of(const Tensor& points) {
  PointCloud cloud;
  cloud.positions = Tensor({points.rows(), 3}, DType::f32);
  for (std::int64_t i = 0; i < points.rows(); ++i) {
    for (std::int64_t axis = 0; axis < 3; ++axis)
      cloud.positions.data<float>()[3 * i + axis] =
          points.data<float>()[i * points.extent(1) + axis];
  }
  return cloud;
}

template <class T> std::vector<T> values_of(const Tensor& tensor) {
  const Tensor here = copy_to_host(tensor, tensor.stream());
  return {here.span<T>().begin(), here.span<T>().end()};
}

void expect_voxels(const VoxelSites& found, const Tensor& points, const VoxelSiteOptions& options) {
  const PointCloud cloud = cloud_of(points);
  const Voxels expected =
      voxelize(cloud, cloud.positions, {.size = options.size, .range = options.range});
  EXPECT_EQ(values_of<std::int32_t>(found.set->coordinates()),
            values_of<std::int32_t>(expected.coordinates));
  const auto rows = values_of<std::int32_t>(found.row_of);
  const auto wanted = values_of<std::int64_t>(expected.point_to_voxel);
  EXPECT_TRUE(std::equal(rows.begin(), rows.end(), wanted.begin(), wanted.end()));
}

TEST(VoxelSites, AreThoseOfVoxelize) {
  for (const std::int64_t count : {0, 1, 33, 9001}) {
    const Tensor points = random_points(count, 5, 4.0f);
    VoxelSiteOptions options{.size = {0.4f, 0.3f, 0.7f}};
    expect_voxels(voxel_sites(points, {}, options), points, options);
    options.range = {-2.5f, -3.0f, -1.0f, 2.0f, 3.5f, 1.5f};
    expect_voxels(voxel_sites(points, {}, options), points, options);
  }
}

TEST(VoxelSites, ItemsOfABatchInAnyOrderStayApart) {
  const Tensor points = random_points(400, 3, 1.0f);
  Tensor batch({400}, DType::i32);
  for (std::int32_t i = 0; i < 400; ++i)
    batch.data<std::int32_t>()[i] = (i * 7) % 3;
  const VoxelSites found = voxel_sites(points, batch, {.size = {1, 1, 1}, .batch_size = 4});
  EXPECT_EQ(found.set->batch_size(), 4);
  EXPECT_EQ(found.set->size(), 3 * 8);
  const Cells cells = cells_of(*found.set);
  for (std::size_t i = 0; i < 400; ++i) {
    const auto row = static_cast<std::size_t>(found.row_of.span<std::int32_t>()[i]);
    const float* const at = points.data<float>() + 3 * i;
    EXPECT_EQ(cells[row],
              (Cell{batch.span<std::int32_t>()[i], static_cast<std::int32_t>(std::floor(at[0])),
                    static_cast<std::int32_t>(std::floor(at[1])),
                    static_cast<std::int32_t>(std::floor(at[2]))}));
  }
}

TEST(VoxelSites, PointsOutsideTheSpatialShapeAreLeftOut) {
  const float values[] = {0.5f, 0.5f, 0.5f, 3.5f, 1.5f,  0.5f, 4.0f, 0.5f,
                          0.5f, 0.5f, -.1f, 0.5f, 1e30f, 0.5f, 0.5f};
  const Tensor points = Tensor::from<float>(values, {5, 3});
  const VoxelSites found =
      voxel_sites(points, {}, {.size = {1, 1, 1}, .spatial_shape = Axes{4, 2, 1}});
  EXPECT_EQ(cells_of(*found.set), (Cells{{0, 0, 0, 0}, {0, 3, 1, 0}}));
  EXPECT_EQ(values_of<std::int32_t>(found.row_of), (std::vector<std::int32_t>{0, 1, -1, -1, -1}));
  EXPECT_EQ(*found.set->spatial_shape(), (Axes{4, 2, 1, 0}));
}

TEST(VoxelSites, WhatHasNoVoxelIsRefused) {
  const Tensor points = random_points(4, 3, 1.0f);
  const auto refusal = [&](const Tensor& where, const Tensor& batch, VoxelSiteOptions options) {
    return message_of(
        [&] { voxel_sites(where, batch.defined() ? batch.view() : ConstTensorView{}, options); });
  };
  Tensor bad = points.clone();
  bad.data<float>()[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(refusal(bad, {}, {.size = {1, 1, 1}}).find("point 2 is at"), std::string::npos);
  bad.data<float>()[7] = 1e20f;
  EXPECT_NE(refusal(bad, {}, {.size = {1, 1, 1}}).find("no cell in 32 bits"), std::string::npos);
  const std::int32_t items[] = {0, 1, 2, 0};
  EXPECT_EQ(
      refusal(points, Tensor::from<std::int32_t>(items, {4}), {.size = {1, 1, 1}, .batch_size = 2}),
      "point 2 is of batch item 2 in a batch of 2");
  EXPECT_NE(refusal(points, {}, {.size = {1, 0, 1}}).find("voxel size along y"), std::string::npos);
  EXPECT_NE(refusal(points, {}, {.size = {1, 1, 1}, .range = {{0, 0, 0, 1, 0, 1}}}).find("range"),
            std::string::npos);
  EXPECT_NE(refusal(Tensor({4, 2}, DType::f32), {}, {.size = {1, 1, 1}}).find("[P, 3 or more]"),
            std::string::npos);
}

TEST(VoxelSitesGpu, AreThoseOfTheCpu) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t count : {0, 1, 33, 9001}) {
    const Tensor points = random_points(count, 5, 4.0f);
    Tensor batch({count}, DType::i32);
    for (std::int64_t i = 0; i < count; ++i)
      batch.data<std::int32_t>()[i] = static_cast<std::int32_t>((i * 7) % 3);
    for (const bool ranged : {false, true}) {
      for (const bool shaped : {false, true}) {
        VoxelSiteOptions options{.size = {0.4f, 0.3f, 0.7f}, .batch_size = 3};
        if (ranged) options.range = {-2.5f, -3.0f, -1.0f, 2.0f, 3.5f, 1.5f};
        if (shaped) options.spatial_shape = Axes{9, 7, 2};
        const VoxelSites cpu = voxel_sites(points, batch, options);
        const VoxelSites gpu =
            voxel_sites(copy_to(stream, points), copy_to(stream, batch), options);
        EXPECT_EQ(gpu.set->size(), cpu.set->size());
        EXPECT_EQ(values_of<std::int32_t>(gpu.set->coordinates()),
                  values_of<std::int32_t>(cpu.set->coordinates()));
        EXPECT_EQ(values_of<std::int32_t>(gpu.row_of), values_of<std::int32_t>(cpu.row_of));
      }
    }
  }
}

TEST(VoxelSitesGpu, APointWithoutAVoxelIsRefused) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  Tensor points = random_points(50, 3, 1.0f);
  const std::int32_t item = 1;
  const Tensor batch = Tensor::full({50}, DType::i32, item);
  const VoxelSiteOptions options{.size = {1, 1, 1}, .range = {{-1, -1, -1, 1, 1, 1}}};
  EXPECT_THROW(voxel_sites(copy_to(stream, points), copy_to(stream, batch), options), UserError);
  points.data<float>()[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(voxel_sites(copy_to(stream, points), {}, options), UserError);
}

}   // namespace
}   // namespace pumice::test
