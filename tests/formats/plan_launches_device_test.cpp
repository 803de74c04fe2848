// How many launches a network's sets and maps take where they are planned, and which: on small
// levels each costs more than what it does.
// Covers formats/map_plan and cut_batch, and create_sets and voxelize of src/coords/cuda, on a
// device.
#include <pumice/formats/map_plan.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/maps/map_cache.hpp>

#include "coords/cells.hpp"
#include "coords/cuda/sources.hpp"
#include "formats/cuda/map_formats.hpp"
#include "formats/cuda/sources.hpp"
#include "formats/map_entries.hpp"
#include "jit/module.hpp"
#include "maps/cuda/sources.hpp"
#include "support/gpu.hpp"
#include "support/watched_launches.hpp"

namespace pumice::test {
namespace {

using Launches = std::vector<std::string>;

constexpr std::size_t kLevels = 5;
constexpr std::int64_t kSites = 700;
constexpr std::int64_t kRoom = 5000;   // more than one launch sorts
const CoordinateBounds kBounds{axes(3, -40), axes(3, 40)};

CoordinateSetPtr sites(std::uint64_t seed) {
  Random random(seed);
  return CoordinateSet::create(
      tensor_of(distinct_cells(random_cells(kSites, 3, 24, random), random), 3),
      {.batch_size = 3, .bounds = kBounds});
}

/// Those of MinkUNet42: at each level 3x3x3, and down to the next and up again by 2x2x2.
std::vector<KernelMapPtr> maps_of_unet(MapCache& cache, CoordinateSetPtr set) {
  const KernelWindow cube = submanifold_window(3, axes(3, 3), axes(3, 1));
  const KernelWindow half{.dimension = 3, .size = axes(3, 2), .stride = axes(3, 2)};
  std::vector<KernelMapPtr> maps;
  for (std::size_t level = 0; level < kLevels; ++level) {
    maps.push_back(cache.submanifold(set, cube));
    if (level + 1 == kLevels) break;
    maps.push_back(cache.strided(set, half, StridedOutputs::cell));
    set = maps.back()->out();
  }
  return maps;
}

/// Asks for tiles in both directions, and where there are gradients for pairs.
void use(const std::vector<KernelMapPtr>& maps, bool trains) {
  for (const KernelMapPtr& map : maps) {
    cuda::MapFormats& formats = cuda::MapFormats::of(*map);
    for (const bool is_transposed : {false, true})
      formats.tiles(is_transposed, {}, cuda::OffsetOrder::any);
    if (trains) formats.pairs(false);
  }
}

/// The kernels of sets and maps that ran; another is a question mark.
Launches names_of(const std::vector<WatchedLaunches::Launch>& launches) {
  std::map<cuda::FunctionHandle, std::string> names;
  for (const auto& groups :
       {cuda::coords_kernels(), cuda::maps_kernels(), cuda::formats_kernels()}) {
    for (const jit::KernelGroup& group : groups) {
      for (const char* const name : group.kernels) {
        const jit::Kernel kernel = jit::load(kGpu, group.source).kernel(name);
        names[reinterpret_cast<cuda::FunctionHandle>(kernel.loaded().handle)] = name;
      }
    }
  }
  Launches ran;
  for (const WatchedLaunches::Launch& launch : launches)
    ran.push_back(names.contains(launch.kernel) ? names.at(launch.kernel) : "?");
  return ran;
}

struct Planned {
  MapPlan plan;
  Tensor cells;
  std::shared_ptr<Tensor> count;

  Planned(const CoordinateSetPtr& set, bool trains, StreamView stream)
      : plan(learned(set, trains, stream)),
        cells(Tensor::full({kRoom, 4}, DType::i32, 77)),
        count(std::make_shared<Tensor>(
            copy_to(stream, Tensor::full({1}, DType::i64, static_cast<double>(set->size()))))) {
    const Tensor& given = set->coordinates();
    std::copy_n(given.data<std::int32_t>(), given.elements(), cells.data<std::int32_t>());
    cells = copy_to(stream, cells);
  }
  MapPlan::Made make() const {
    return plan.make(
        cells, RowCount::on_device(
                   std::shared_ptr<std::int64_t>(count, count->data<std::int64_t>()), kRoom, kGpu));
  }
  static MapPlan learned(const CoordinateSetPtr& set, bool trains, StreamView stream) {
    MapCache cache;
    const CoordinateSetPtr there = CoordinateSet::copy_to(set, stream);
    use(maps_of_unet(cache, there), trains);
    return {cache, there, {.rows = kRoom, .bounds = kBounds, .margin = 1.25}};
  }
};

Launches operator+(Launches first, const Launches& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

const Launches kPasses(3, "sort_scatter_u64");   // 7 bits an axis, 2 of the batch
const Launches kLevelsOfSites{"write_cells", "build_blocks"};
const Launches kTiles{"match_maps",       "gray_keys_u32",    "sort_scatter_u32",
                      "sort_scatter_u32", "sort_scatter_u32", "cut_tiles"};

TEST(PlanLaunchesGpu, sets_and_maps_of_a_network_take_thirteen_and_pairs_one_more) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const CoordinateSetPtr set = sites(1);
  for (const bool trains : {false, true}) {
    SCOPED_TRACE(trains ? "training" : "inference");
    const Planned planned(set, trains, stream);
    planned.make();   // compiles
    WatchedLaunches watched;
    const MapPlan::Made made = planned.make();
    EXPECT_EQ(names_of(watched.take()), Launches({"fill_ranges", "encode_coordinates"}) + kPasses +
                                            kLevelsOfSites + kTiles +
                                            (trains ? Launches{"list_pairs"} : Launches{}));
    const std::vector<KernelMapPtr> maps = made.maps->maps();
    use(maps, trains);
    EXPECT_TRUE(watched.take().empty()) << "nothing is missing";
    MapCache here;
    const std::vector<KernelMapPtr> cpu = maps_of_unet(here, set);
    ASSERT_EQ(maps.size(), cpu.size());
    for (std::size_t i = 0; i < maps.size(); ++i) {
      SCOPED_TRACE(i);
      for (const bool is_transposed : {false, true})
        EXPECT_EQ(tiled_entries(*maps[i], is_transposed, stream), entries_of(*cpu[i]));
      if (trains) {
        EXPECT_EQ(listed_entries(*maps[i], stream), entries_of(*cpu[i]));
      }
    }
    wait(stream);
  }
}

TEST(PlanLaunchesGpu, points_take_as_many_as_coordinates) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const CoordinateSetPtr set = sites(2);
  const Planned planned(set, false, stream);
  Tensor points = Tensor::full({kRoom, 3}, DType::f32, 0);
  Tensor batch = Tensor::full({kRoom}, DType::i32, 0);
  const std::int32_t* const cell = set->coordinates().data<std::int32_t>();
  for (std::int64_t i = 0; i < set->size(); ++i) {
    batch.data<std::int32_t>()[i] = cell[4 * i];
    for (std::int64_t axis = 0; axis < 3; ++axis)
      points.data<float>()[3 * i + axis] = 0.25f + static_cast<float>(cell[4 * i + 1 + axis]);
  }
  points = copy_to(stream, points);
  batch = copy_to(stream, batch);
  const RowCount count = RowCount::on_device(
      std::shared_ptr<std::int64_t>(planned.count, planned.count->data<std::int64_t>()), kRoom,
      kGpu);
  const VoxelSiteOptions options{.size = {1, 1, 1}};
  planned.plan.make(points, batch, count, options);   // compiles
  WatchedLaunches watched;
  const MapPlan::Made made = planned.plan.make(points, batch, count, options);
  EXPECT_EQ(names_of(watched.take()),
            Launches({"fill_ranges", "quantise_points"}) + kPasses + kLevelsOfSites + kTiles);
  MapCache here;
  const std::vector<KernelMapPtr> cpu = maps_of_unet(here, set);
  for (std::size_t i = 0; i < cpu.size(); ++i)
    EXPECT_EQ(tiled_entries(*made.maps->maps()[i], false, stream), entries_of(*cpu[i])) << i;
  wait(stream);
}

}   // namespace
}   // namespace pumice::test
