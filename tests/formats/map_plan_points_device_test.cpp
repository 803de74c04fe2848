// A plan makes voxels of points, with their maps, without being told how many voxels there are: the
// sites, rows and entries of voxels that were made and searched one by one.
// Covers formats/map_plan and coords/voxel_sites on a device.
#include <pumice/formats/map_plan.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/coords/voxel_sites.hpp>
#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/maps/map_cache.hpp>

#include "coords/cells.hpp"
#include "formats/cuda/map_formats.hpp"
#include "formats/map_entries.hpp"
#include "support/gpu.hpp"
#include "support/message_of.hpp"

namespace pumice::test {
namespace {

constexpr std::int64_t kPoints = 2500;   // of room
constexpr std::int64_t kRows = 1900;
constexpr std::int32_t kItems = 3;
const std::string kFine = "(nothing was thrown)";
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Points {
  Tensor at;      // f32 [kPoints, 5], of which `count` are in use: others are NaN
  Tensor batch;   // i32 [kPoints]; -7 past them
  std::int64_t count = 0;

  ConstTensorView used() const {
    return {at.raw(), DType::f32, {count, at.extent(1)}, at.stream()};
  }
  ConstTensorView used_batch() const { return {batch.raw(), DType::i32, {count}, batch.stream()}; }
};

/// Within `extent` metres of 0.
Points random_points(std::int64_t count, float extent, std::uint64_t seed) {
  Points points{Tensor::full({kPoints, 5}, DType::f32, kNaN),
                Tensor::full({kPoints}, DType::i32, -7), count};
  Random random(seed);
  std::generate_n(points.at.data<float>(), count * 5,
                  [&] { return static_cast<float>(random.uniform(-extent, extent)); });
  for (std::int64_t i = 0; i < count; ++i)
    points.batch.data<std::int32_t>()[i] = static_cast<std::int32_t>(i * 7 % kItems);
  return points;
}

std::vector<KernelMapPtr> maps_on(MapCache& cache, const CoordinateSetPtr& set) {
  const KernelWindow cube = submanifold_window(3, axes(3, 3), axes(3, 1));
  const KernelWindow halving{.dimension = 3, .size = axes(3, 2), .stride = axes(3, 2)};
  const KernelMapPtr fine = cache.submanifold(set, cube);
  const KernelMapPtr down = cache.strided(set, halving, StridedOutputs::cell);
  return {fine, down, cache.submanifold(down->out(), cube)};
}

/// What is voxelised how: without bounds, in a range, in a grid.
std::vector<VoxelSiteOptions> kinds() {
  std::vector<VoxelSiteOptions> all(3, {.size = {0.5f, 0.4f, 0.6f}, .batch_size = kItems});
  all[1].range = {-1.5f, -2.0f, -1.0f, 2.0f, 1.0f, 1.5f};
  all[2].spatial_shape = axes(3, 4);
  return all;
}

class Device {
 public:
  Device(StreamView stream, VoxelSiteOptions options) : stream_(stream), options_(options) {}

  MapPlan learned_from(const Points& points, const MapPlan* earlier = nullptr,
                       std::int64_t rows = kRows) const {
    const Tensor at = copy_to(stream_, points.used());
    const Tensor batch = copy_to(stream_, points.used_batch());
    const VoxelSites voxels = voxel_sites(at, batch, options_);
    MapCache cache;
    for (const KernelMapPtr& map : maps_on(cache, voxels.set))
      (void)cuda::MapFormats::of(*map).tiles(false, {}, cuda::OffsetOrder::any);
    return {cache,
            voxels.set,
            {.rows = rows, .bounds = *voxels.set->options().bounds, .points = kPoints},
            earlier};
  }

  MapPlan::Made make(const MapPlan& plan, const Points& points) {
    at_ = copy_to(stream_, points.at);
    batch_ = copy_to(stream_, points.batch);
    count_ = std::make_shared<Tensor>(
        copy_to(stream_, Tensor::full({1}, DType::i64, static_cast<double>(points.count))));
    const RowCount count = RowCount::on_device(
        std::shared_ptr<std::int64_t>(count_, count_->data<std::int64_t>()), kPoints, kGpu);
    return plan.make(at_, batch_, count, {.size = options_.size, .range = options_.range});
  }

  std::string trouble_of(const MapPlan& plan, const Points& points) {
    const MapPlan::Made made = make(plan, points);
    return message_of([&] { wait(stream_); });
  }

 private:
  StreamView stream_;
  VoxelSiteOptions options_;
  Tensor at_;
  Tensor batch_;
  std::shared_ptr<Tensor> count_;
};

/// The same sites and maps, and every point in the voxel that it should be in.
void expect_voxels_of(const Points& points, const VoxelSiteOptions& options,
                      const MapPlan::Made& made, StreamView stream) {
  const VoxelSites here = voxel_sites(points.used(), points.used_batch(), options);
  MapCache cache;
  const std::vector<KernelMapPtr> expected = maps_on(cache, here.set);
  const std::vector<KernelMapPtr> planned = made.maps->maps();
  ASSERT_EQ(planned.size(), expected.size());
  ASSERT_EQ(made.input->rows().wait_for_host(stream), here.set->size());
  EXPECT_FALSE(made.input->rows().host_knows());
  const Tensor there = copy_to_host(made.input->coordinates(), stream);
  const Tensor rows = copy_to_host(made.row_of, stream);
  ASSERT_EQ(rows.rows(), kPoints);
  for (std::int64_t point = 0; point < kPoints; ++point) {
    const std::int32_t row = rows.data<std::int32_t>()[point];
    const std::int32_t wanted = point < points.count ? here.row_of.data<std::int32_t>()[point] : -1;
    ASSERT_EQ(row < 0, wanted < 0) << point;
    if (wanted < 0) continue;
    ASSERT_LT(row, here.set->size());
    ASSERT_TRUE(std::equal(there.data<std::int32_t>() + 4 * row,
                           there.data<std::int32_t>() + 4 * row + 4,
                           here.set->coordinates().data<std::int32_t>() + 4 * wanted))
        << point;
  }
  for (std::size_t i = 0; i < planned.size(); ++i)
    EXPECT_EQ(tiled_entries(*planned[i], false, stream), entries_of(*expected[i])) << i;
}

TEST(MapPlanOfPointsGpu, voxels_and_maps_are_those_made_one_by_one) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const VoxelSiteOptions& options : kinds()) {
    Device device(stream, options);
    const MapPlan first = device.learned_from(random_points(2000, 2.6f, 1));
    const MapPlan plan = device.learned_from(random_points(400, 1.6f, 2), &first);
    EXPECT_EQ(plan.capacities()[0], kRows);
    EXPECT_EQ(std::ranges::count(plan.capacities(), kPoints), 0);
    for (const std::int64_t count : {2000, 1, 31, 0, 33, 900}) {
      SCOPED_TRACE(count);
      const Points points = random_points(count, 2.5f, 10 + static_cast<std::uint64_t>(count));
      const MapPlan::Made made = device.make(plan, points);
      expect_voxels_of(points, options, made, stream);
      wait(stream);
    }
  }
}

TEST(MapPlanOfPointsGpu, no_set_has_the_room_of_points) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  Device device(stream, kinds()[0]);
  // With so little of a margin every set gets the least room there is, which a set of points has.
  const Points points = random_points(100, 2.0f, 3);
  const VoxelSites voxels =
      voxel_sites(copy_to(stream, points.used()), copy_to(stream, points.used_batch()), kinds()[0]);
  MapCache cache;
  (void)maps_on(cache, voxels.set);
  for (const std::int64_t room : {1024, 1025}) {
    const MapPlan plan(
        cache, voxels.set,
        {.rows = kRows, .bounds = *voxels.set->options().bounds, .margin = 0.01, .points = room});
    EXPECT_EQ(plan.capacities().back(), room == 1024 ? 1025 : 1024);
  }
}

TEST(MapPlanOfPointsGpu, what_does_not_fit_is_said_and_poisons) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  Device device(stream, kinds()[0]);
  const MapPlan plan = device.learned_from(random_points(300, 2.0f, 4), nullptr, 400);
  EXPECT_EQ(device.trouble_of(plan, random_points(300, 2.0f, 5)), kFine);
  const Points many = random_points(2400, 2.0f, 6);
  const VoxelSites here = voxel_sites(many.used(), many.used_batch(), kinds()[0]);
  ASSERT_GT(here.set->size(), 400);
  const std::string message = device.trouble_of(plan, many);
  EXPECT_NE(
      message.find("voxels: rows: " + std::to_string(here.set->size()) + " needed, capacity 400"),
      std::string::npos)
      << message;
  for (const float bad : {kNaN, 1e5f, std::numeric_limits<float>::infinity()}) {
    Points points = random_points(300, 2.0f, 7);
    points.at.data<float>()[5 * 17 + 2] = bad;
    EXPECT_NE(device.trouble_of(plan, points).find("1 of 300"), std::string::npos) << bad;
  }
  Points item = random_points(300, 2.0f, 8);
  item.batch.data<std::int32_t>()[299] = kItems;
  EXPECT_NE(device.trouble_of(plan, item).find("1 of 300"), std::string::npos);
  Points over = random_points(300, 2.0f, 9);
  over.count = kPoints + 1;
  EXPECT_NE(device.trouble_of(plan, over), kFine) << "more points than there is room for";
  EXPECT_EQ(device.trouble_of(plan, random_points(300, 2.0f, 5)), kFine)
      << "and then all is well again";
}

TEST(MapPlanOfPointsGpu, mistakes_are_named) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  Device device(stream, kinds()[0]);
  const MapPlan plan = device.learned_from(random_points(300, 2.0f, 4));
  const Points points = random_points(10, 2.0f, 5);
  const Tensor at = copy_to(stream, points.at);
  const RowCount few = RowCount::exact(10);
  const VoxelSiteOptions options{.size = {0.5f, 0.4f, 0.6f}};
  EXPECT_NE(message_of([&] { (void)plan.make(at, {}, few, options); }).find("2500 points"),
            std::string::npos);
  const RowCount all = RowCount::exact(kPoints);
  EXPECT_NE(message_of([&] {
              (void)plan.make(at, {}, all, {.size = {0.5f, -1, 1}});
            }).find("size"),
            std::string::npos);
  const Tensor doubles = Tensor::zeros({kPoints, 3}, DType::f64, stream);
  EXPECT_NE(message_of([&] { (void)plan.make(doubles, {}, all, options); }).find("f32"),
            std::string::npos);
  wait(stream);
}

}   // namespace
}   // namespace pumice::test
