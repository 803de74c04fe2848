// What training asks of maps is in a plan's maps too: lists of pairs and tiles of transposed maps,
// in room learned from a pass, with the entries of maps that were built one by one.
// Covers formats/map_plan and what map_formats tells and makes for it, on a device.
#include <pumice/formats/map_plan.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

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

constexpr std::int64_t kRoom = 2000;
constexpr std::int32_t kItems = 3;
const CoordinateBounds kBounds{axes(3, -20), axes(3, 40)};

CoordinateOptions options() {
  return {.batch_size = kItems, .bounds = kBounds};
}

KernelWindow halving() {
  return {.dimension = 3, .size = axes(3, 2), .stride = axes(3, 2)};
}

CoordinateSetPtr on_cpu(std::size_t count, std::int32_t extent, std::uint64_t seed) {
  Random random(seed);
  return CoordinateSet::create(
      tensor_of(distinct_cells(random_cells(count, 3, extent, random), random), 3), options());
}

/// The maps of a small U-net: on the sites, to cells of two, on those, and by themselves.
std::vector<KernelMapPtr> maps_on(MapCache& cache, const CoordinateSetPtr& set) {
  const KernelWindow cube = submanifold_window(3, axes(3, 3), axes(3, 1));
  const KernelMapPtr fine = cache.submanifold(set, cube);
  const KernelMapPtr down = cache.strided(set, halving(), StridedOutputs::cell);
  return {fine, down, cache.submanifold(down->out(), cube),
          cache.submanifold(set, submanifold_window(3, axes(3, 1), axes(3, 1)))};
}

/// Asks for what convolutions, the gradients of their inputs and those of their weights run on.
void train(const std::vector<KernelMapPtr>& maps) {
  for (const KernelMapPtr& map : maps) {
    cuda::MapFormats& formats = cuda::MapFormats::of(*map);
    for (const bool is_transposed : {false, true})
      formats.tiles(is_transposed, {}, cuda::OffsetOrder::any);
    formats.pairs(false);
  }
}

class Device {
 public:
  explicit Device(StreamView stream) : stream_(stream) {}

  MapPlan learned_from(const CoordinateSetPtr& set, const MapPlan* earlier = nullptr) const {
    MapCache cache;
    const CoordinateSetPtr there = CoordinateSet::copy_to(set, stream_);
    train(maps_on(cache, there));
    return {cache, there, room(), earlier};
  }
  static PlanRoom room() { return {.rows = kRoom, .bounds = kBounds, .margin = 1.25}; }

  MapPlan::Made make(const MapPlan& plan, const CoordinateSetPtr& set) {
    const Tensor& cells = set->coordinates();
    Tensor all = Tensor::full({kRoom, 4}, DType::i32, 77);
    std::copy_n(cells.data<std::int32_t>(), cells.elements(), all.data<std::int32_t>());
    coordinates_ = copy_to(stream_, all);
    count_ = std::make_shared<Tensor>(
        copy_to(stream_, Tensor::full({1}, DType::i64, static_cast<double>(set->size()))));
    return plan.make(coordinates_, RowCount::on_device(std::shared_ptr<std::int64_t>(
                                                           count_, count_->data<std::int64_t>()),
                                                       kRoom, kGpu));
  }

 private:
  StreamView stream_;
  Tensor coordinates_;
  std::shared_ptr<Tensor> count_;
};

std::int64_t room_for_pairs(const KernelMap& map) {
  return cuda::MapFormats::of(map).pairs(false).pairs.capacity;
}

TEST(MapPlanGpu, what_training_asks_for_is_that_of_maps_built_one_by_one) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  Device device(stream);
  const MapPlan first = device.learned_from(on_cpu(900, 12, 1));
  const MapPlan plan = device.learned_from(on_cpu(300, 7, 2), &first);   // no less room for it
  for (const std::size_t count : {1u, 31u, 33u, 300u, 900u, 0u}) {
    SCOPED_TRACE(count);
    const CoordinateSetPtr set = on_cpu(count, 12, 10 + count);
    const MapPlan::Made made = device.make(plan, set);
    MapCache here;
    const std::vector<KernelMapPtr> expected = maps_on(here, set);
    const std::vector<KernelMapPtr> planned = made.maps->maps();
    ASSERT_EQ(planned.size(), expected.size());
    for (std::size_t i = 0; i < planned.size(); ++i) {
      SCOPED_TRACE("map " + std::to_string(i));
      const Entries entries = entries_of(*expected[i]);
      EXPECT_EQ(listed_entries(*planned[i], stream), entries);
      EXPECT_EQ(tiled_entries(*planned[i], false, stream), entries);
      if (i == 1) {   // of centred maps offsets are told by their numbers from the other end
        EXPECT_EQ(tiled_entries(*planned[i], true, stream), entries);
      }
    }
    wait(stream);
  }
}

TEST(MapPlanGpu, lists_have_the_room_that_was_learned) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  Device device(stream);
  const CoordinateSetPtr set = on_cpu(900, 12, 1);
  MapCache here;
  const auto pairs = static_cast<double>(entries_of(*maps_on(here, set).front()).size());
  const MapPlan plan = device.learned_from(set);
  const MapPlan::Made made = device.make(plan, set);
  const std::vector<KernelMapPtr> maps = made.maps->maps();
  const double rows = static_cast<double>(set->size());
  EXPECT_EQ(room_for_pairs(*maps[0]),
            static_cast<std::int64_t>(std::ceil(pairs * 1.25 * static_cast<double>(kRoom) / rows)));
  EXPECT_LT(room_for_pairs(*maps[0]), 27 * kRoom) << "and not that of all there could be";
  EXPECT_EQ(room_for_pairs(*maps[3]), kRoom) << "rows by themselves need no list";

  train(maps);   // a plan that is learned from what it made keeps its room
  const MapPlan again(*made.maps, made.input, Device::room(), &plan);
  const std::vector<KernelMapPtr> later = device.make(again, set).maps->maps();
  for (std::size_t i = 0; i < maps.size(); ++i)
    EXPECT_GE(room_for_pairs(*later[i]), room_for_pairs(*maps[i])) << i;
  wait(stream);
}

/// Cells that have no neighbours, and cells that all have many.
CoordinateSetPtr cells_apart(std::int32_t step) {
  Cells cells;
  for (std::int32_t i = 0; i < 200; ++i)
    cells.push_back({0, step * (i % 6), step * (i / 6 % 6), step * (i / 36)});
  return CoordinateSet::create(tensor_of(cells, 3), options());
}

TEST(MapPlanGpu, lists_keep_the_room_of_a_denser_scan) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  Device device(stream);
  const CoordinateSetPtr crowd = cells_apart(1);
  const MapPlan first = device.learned_from(crowd);
  const MapPlan plan = device.learned_from(cells_apart(5), &first);
  const MapPlan::Made made = device.make(plan, crowd);
  EXPECT_EQ(room_for_pairs(*made.maps->maps()[0]),
            room_for_pairs(*device.make(first, crowd).maps->maps()[0]));
  MapCache here;
  EXPECT_EQ(listed_entries(*made.maps->maps()[0], stream),
            entries_of(*maps_on(here, crowd).front()));
  wait(stream);
}

TEST(MapPlanGpu, too_many_pairs_are_said_and_poison_the_list) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  Device device(stream);
  const PlanRoom exact{.rows = kRoom, .bounds = kBounds, .margin = 0.01};   // 1024 of everything
  MapCache cache;
  const CoordinateSetPtr there = CoordinateSet::copy_to(cells_apart(5), stream);
  train(maps_on(cache, there));
  const MapPlan plan(cache, there, exact);
  Buffer<std::int32_t> flag(1, stream);
  const auto trouble = [&] { return copy_to_host(flag, stream).front() != 0; };
  {
    const MapPlan::Made made = device.make(plan, cells_apart(5));
    const PairListRef list = cuda::MapFormats::of(*made.maps->maps()[0]).pairs(false);
    EXPECT_EQ(copy_to_host(list.pairs.count, 1, stream).front(), 200);
    EXPECT_EQ(list.pairs.capacity, 1024);
  }
  MapCache here;
  const CoordinateSetPtr crowd = cells_apart(1);
  const auto needed = static_cast<std::int64_t>(entries_of(*maps_on(here, crowd).front()).size());
  ASSERT_GT(needed, 1024);
  const MapPlan::Made made = device.make(plan, crowd);
  const PairListRef list = cuda::MapFormats::of(*made.maps->maps()[0]).pairs(false);
  const std::string message = message_of([&] { wait(stream); });
  EXPECT_NE(message.find(": pairs: " + std::to_string(needed) + " needed, capacity 1024"),
            std::string::npos)
      << message;
  EXPECT_EQ(copy_to_host(list.pairs.count, 1, stream).front(), needed) << "which is poison";
  copy_trouble(stream, flag.data());
  EXPECT_FALSE(trouble()) << "it has been raised";
  const MapPlan::Made again = device.make(plan, crowd);
  copy_trouble(stream, flag.data());
  EXPECT_THROW(wait(stream), UserError);
  EXPECT_TRUE(trouble()) << "the device knows before the host has waited";
}

TEST(MapPlanGpu, what_nobody_asks_for_is_left_out) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  Device device(stream);
  const CoordinateSetPtr set = on_cpu(300, 7, 3);
  MapCache cache;
  const CoordinateSetPtr there = CoordinateSet::copy_to(set, stream);
  for (const KernelMapPtr& map : maps_on(cache, there))
    cuda::MapFormats::of(*map).tiles(false, {}, cuda::OffsetOrder::any);
  const MapPlan plan(cache, there, Device::room());
  const MapPlan::Made made = device.make(plan, set);
  for (const KernelMapPtr& map : made.maps->maps()) {
    EXPECT_FALSE(cuda::MapFormats::of(*map).asked_pairs());
    EXPECT_TRUE(cuda::MapFormats::of(*map).asked().empty()) << "made, and not asked for yet";
  }
  // Asked for all the same, it is made then, in room for all there could be.
  EXPECT_EQ(room_for_pairs(*made.maps->maps()[0]), 27 * kRoom);
  wait(stream);
}

}   // namespace
}   // namespace pumice::test
