// Kernel maps built by device code beside those of the CPU.
// Covers cut_maps and match_batch of src/formats/cuda and src/maps/cuda.
#include "formats/cuda/cut_maps.hpp"

#include <gtest/gtest.h>

#include <pumice/coords/set_operations.hpp>
#include <pumice/maps/build.hpp>

#include "device/device_maps.hpp"
#include "device/device_sets.hpp"

namespace pumice::test {
namespace {

/// For tiles of the usual height and pairs.
cuda::CutRequest request_of(const CoordinateSetRef& in, const CoordinateSetRef& out,
                            const cuda::DeviceWindow& window, Reach reach = Reach::out_to_in) {
  return {.map = {.in = in, .out = out, .window = &window, .reach = reach},
          .tiles = cuda::TileOptions{},
          .pairs = cuda::PairOptions{}};
}

/// From a set to itself.
cuda::CutRequest request_of(const Mirror& set, const cuda::DeviceWindow& window) {
  return request_of(set.ref(), set.ref(), window);
}

cuda::CutMap build(TestRunner& runner, const cuda::CutRequest& request) {
  return std::move(cuda::cut_maps(runner, std::span(&request, 1)).front());
}

struct SubmanifoldCase {
  int dimension;
  Axes size;
  Axes dilation;
  std::size_t cells;
  std::int32_t extent;
};

const SubmanifoldCase kSubmanifold[] = {
    {3, {3, 3, 3}, {1, 1, 1}, 2000, 20},
    {3, {3, 3, 3}, {1, 1, 1}, 0, 20},
    {3, {3, 3, 3}, {1, 1, 1}, 1, 20},
    {3, {3, 3, 3}, {1, 1, 1}, 31, 4},
    {3, {3, 3, 3}, {1, 1, 1}, 33, 4},
    {3, {3, 3, 3}, {1, 1, 1}, 800, 8},
    {3, {1, 1, 1}, {1, 1, 1}, 300, 9},
    {3, {2, 2, 2}, {1, 1, 1}, 900, 12},
    {3, {5, 5, 5}, {1, 1, 1}, 900, 12},
    {3, {3, 3, 3}, {2, 2, 2}, 900, 14},
    {3, {3, 3, 3}, {5, 5, 5}, 900, 20},
    {3, {3, 1, 5}, {1, 3, 2}, 900, 14},
    {2, {3, 3}, {1, 1}, 700, 40},
    {2, {7, 5}, {2, 1}, 700, 40},
    {1, {9}, {3}, 300, 400},
    {1, {3}, {70}, 300, 400},
    {4, {3, 3, 3, 3}, {1, 1, 1, 1}, 700, 7},
    {4, {2, 3, 1, 3}, {1, 2, 1, 2}, 700, 7},
};

PUMICE_DEVICE_TEST(DeviceMaps, SubmanifoldMapsAreThoseOfTheCpu) {
  for (const SubmanifoldCase& c : kSubmanifold) {
    const KernelWindow window = submanifold_window(c.dimension, c.size, c.dilation);
    SCOPED_TRACE(::testing::Message() << to_string(window) << ", " << c.cells << " cells");
    const auto set = random_set(c.dimension, c.cells, c.extent, c.cells + 1);
    const auto cpu = submanifold_map(set, window);
    const auto runner = make_runner();
    const Mirror mirror(*runner, set);
    const cuda::DeviceWindow on_device(*runner, window);
    const auto map = build(*runner, request_of(mirror, on_device));
    EXPECT_EQ(runner->record().code, kFine);
    expect_same_map(map, cpu->view(), 1);
  }
}

PUMICE_LARGE_DEVICE_TEST(DeviceMaps, TilesOfAnyHeightAndSplitHoldTheSamePairs) {
  const auto set = random_set(3, 1500, 16, 4);
  for (const auto& [tile_rows, splits, size] :
       {std::tuple{64, 1, 3}, {64, 3, 3}, {128, 2, 3}, {256, 3, 5}, {1024, 4, 3}}) {
    const KernelWindow window = submanifold_window(3, axes(3, size), axes(3, 1));
    SCOPED_TRACE(::testing::Message() << tile_rows << " rows, " << splits << " splits");
    const auto cpu = submanifold_map(set, window);
    const auto runner = make_runner();
    const Mirror mirror(*runner, set);
    const cuda::DeviceWindow on_device(*runner, window);
    cuda::CutRequest request = request_of(mirror, on_device);
    request.tiles = cuda::TileOptions{.tile_rows = tile_rows, .splits = splits};
    expect_same_map(build(*runner, request), cpu->view(), splits);
  }
}

PUMICE_DEVICE_TEST(DeviceMaps, MirroredOffsetsOfACentredMapAreItsTranspose) {
  const auto set = random_set(3, 900, 14, 6);
  const KernelWindow window = submanifold_window(3, {3, 5, 3}, {1, 1, 2});
  const auto runner = make_runner();
  const Mirror mirror(*runner, set);
  const cuda::DeviceWindow on_device(*runner, window);
  const auto map = build(*runner, request_of(mirror, on_device));
  std::vector<DevicePair> turned;
  const auto last = static_cast<int>(window.volume()) - 1;
  for (const auto& [k, out, in] : check_tiles(map.tiles(), map.entries().rows(), 1))
    turned.emplace_back(last - k, out, in);
  std::sort(turned.begin(), turned.end());
  EXPECT_EQ(turned, pairs_of(transposed(submanifold_map(set, window)->view())));
}

struct StridedCase {
  int dimension;
  Axes size;
  Axes stride;
  Axes padding;
  Axes dilation;
  StridedOutputs outputs;
};
const StridedCase kStrided[] = {
    {3, {2, 2, 2}, {2, 2, 2}, {0, 0, 0}, {1, 1, 1}, StridedOutputs::cell},
    {3, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, StridedOutputs::cell},
    {3, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, StridedOutputs::dilating},
    {3, {3, 3, 3}, {3, 3, 3}, {0, 0, 0}, {1, 1, 1}, StridedOutputs::cell},
    {3, {3, 1, 3}, {2, 1, 3}, {1, 0, 2}, {2, 1, 1}, StridedOutputs::dilating},
    {2, {2, 2}, {2, 2}, {0, 0}, {1, 1}, StridedOutputs::cell},
    {1, {5}, {2}, {2}, {1}, StridedOutputs::dilating},
    {4, {2, 2, 2, 2}, {2, 2, 2, 2}, {0, 0, 0, 0}, {1, 1, 1, 1}, StridedOutputs::cell},
};

PUMICE_DEVICE_TEST(DeviceMaps, StridedMapsAndTheirTransposesAreThoseOfTheCpu) {
  for (const StridedCase& c : kStrided) {
    KernelWindow window;
    window.dimension = c.dimension;
    window.size = c.size;
    window.stride = c.stride;
    window.padding = c.padding;
    window.dilation = c.dilation;
    SCOPED_TRACE(to_string(window));
    const auto fine = random_set(c.dimension, 900, c.dimension == 1 ? 900 : 14, 8);
    const auto cpu = strided_map(fine, window, c.outputs);
    const auto transpose = transposed_map(cpu->out(), fine, window);
    const auto runner = make_runner();
    const Mirror in(*runner, fine);
    const Mirror out(*runner, cpu->out());
    const cuda::DeviceWindow on_device(*runner, window);
    cuda::CutRequest requests[] = {request_of(in.ref(), out.ref(), on_device),
                                   request_of(out.ref(), in.ref(), on_device, Reach::in_to_out)};
    requests[1].tiles->tile_rows = 64;
    const auto maps = cuda::cut_maps(*runner, requests);
    expect_same_map(maps[0], cpu->view(), 1);
    expect_same_map(maps[1], transpose->view(), 1);
  }
}

PUMICE_DEVICE_TEST(DeviceMaps, HalvedKeysAreNotTakenApart) {
  const auto fine = random_set(3, 500, 20, 1);
  const auto coarse = coarsen(*fine, axes(3, 2));
  KernelWindow window;
  window.size = axes(3, 2);
  window.stride = axes(3, 2);
  const auto runner = make_runner();
  const Mirror in(*runner, fine);
  const Mirror out(*runner, coarse);
  const cuda::DeviceWindow on_device(*runner, window);
  cuda::MapSearch map{.in = in.ref(), .out = out.ref(), .window = &on_device};
  EXPECT_EQ(cuda::key_relation(map), KeyRelation::in_is_finer);
  std::swap(map.in, map.out);
  map.reach = Reach::in_to_out;
  EXPECT_EQ(cuda::key_relation(map), KeyRelation::out_is_finer);
}

PUMICE_DEVICE_TEST(DeviceMaps, ANetworkOfMapsIsBuiltTogether) {
  std::vector<CoordinateSetPtr> levels = {random_set(3, 2500, 40, 12)};
  for (int k = 1; k < 5; ++k)
    levels.push_back(coarsen(*levels.back(), axes(3, 2)));
  const auto runner = make_runner();
  const auto created = create_on_device(*runner, *levels[0], 5, cuda::Repeats::refuse, 10);
  const KernelWindow cube = submanifold_window(3, axes(3, 3), axes(3, 1));
  KernelWindow half;
  half.size = axes(3, 2);
  half.stride = axes(3, 2);
  const cuda::DeviceWindow cube_on_device(*runner, cube);
  const cuda::DeviceWindow half_on_device(*runner, half);
  std::vector<cuda::CutRequest> requests;
  std::vector<KernelMapPtr> cpu;
  for (std::size_t k = 0; k < 5; ++k) {
    const auto here = created.sets[k].ref();
    requests.push_back({{here, here, &cube_on_device, Reach::out_to_in}, cuda::TileOptions{}});
    cpu.push_back(submanifold_map(levels[k], cube));
    if (k == 4) break;
    const auto next = created.sets[k + 1].ref();
    requests.push_back({{here, next, &half_on_device, Reach::out_to_in}, cuda::TileOptions{}});
    cpu.push_back(map_between(levels[k], levels[k + 1], half));
    requests.push_back({{next, here, &half_on_device, Reach::in_to_out}, cuda::TileOptions{}});
    cpu.push_back(transposed_map(levels[k + 1], levels[k], half));
  }
  const std::size_t before = runner->launches().size();
  const auto maps = cuda::cut_maps(*runner, requests);
  // A fill, a match, keys, a sort of few rows, the tiles.
  EXPECT_EQ(runner->launches().size() - before, 5u);
  for (std::size_t i = 0; i < maps.size(); ++i) {
    SCOPED_TRACE(i);
    expect_same_map(maps[i], cpu[i]->view(), 1);
  }
}

PUMICE_LARGE_DEVICE_TEST(DeviceMaps, LargeKernelsTakeSeveralWords) {
  const auto set = random_set(3, 400, 9, 3);
  const KernelWindow window = submanifold_window(3, {11, 11, 9}, axes(3, 1));   // 1,089 offsets
  const auto cpu = submanifold_map(set, window);
  const auto runner = make_runner();
  const Mirror mirror(*runner, set);
  const cuda::DeviceWindow on_device(*runner, window);
  cuda::CutRequest request = request_of(mirror, on_device);
  request.tiles->splits = 2;
  expect_same_map(build(*runner, request), cpu->view(), 2);
}

PUMICE_LARGE_DEVICE_TEST(DeviceMaps, ALargeMapIsThatOfTheCpu) {
  const auto set = random_set(3, 66000, 120, 17);
  const KernelWindow window = submanifold_window(3, axes(3, 3), axes(3, 1));
  const auto cpu = submanifold_map(set, window);
  const auto runner = make_runner();
  const Mirror mirror(*runner, set);
  const cuda::DeviceWindow on_device(*runner, window);
  expect_same_map(build(*runner, request_of(mirror, on_device)), cpu->view(), 1);
}

cuda::CutMap with_room_for(TestRunner& runner, const CoordinateSetPtr& set, std::int64_t entries,
                           std::int64_t pairs) {
  const Mirror mirror(runner, set);
  const cuda::DeviceWindow window(runner, submanifold_window(3, axes(3, 3), axes(3, 1)));
  cuda::CutRequest request = request_of(mirror, window);
  request.tiles->entry_capacity = entries;
  request.pairs->pair_capacity = pairs;
  return build(runner, request);
}

PUMICE_DEVICE_TEST(DeviceMaps, TooLittleRoomIsSaidAndPoisons) {
  const auto set = random_set(3, 900, 14, 8);
  const auto generous = make_runner();
  const auto fits = with_room_for(*generous, set, 0, 0);
  const std::int64_t entries = *fits.entries().count;
  const std::int64_t pairs = *fits.pairs().pairs.count;
  const auto exact = make_runner();
  with_room_for(*exact, set, entries, pairs);
  EXPECT_EQ(exact->record().code, kFine);

  const auto few_entries = make_runner();
  const auto less = with_room_for(*few_entries, set, entries - 1, pairs);
  EXPECT_EQ(few_entries->record().code, kOverCapacity);
  EXPECT_EQ(few_entries->record().needed, entries);
  EXPECT_EQ(few_entries->record().capacity, entries - 1);
  EXPECT_TRUE(less.tiles().tiles.poisoned());
  EXPECT_EQ(*less.entries().count, entries);
  EXPECT_FALSE(less.pairs().pairs.poisoned());

  const auto few_pairs = make_runner();
  const auto fewer = with_room_for(*few_pairs, set, entries, pairs - 1);
  EXPECT_EQ(few_pairs->record().code, kOverCapacity);
  EXPECT_EQ(few_pairs->record().needed, pairs);
  EXPECT_TRUE(fewer.pairs().pairs.poisoned());
  EXPECT_FALSE(fewer.tiles().tiles.poisoned());
}

PUMICE_DEVICE_TEST(DeviceMaps, APoisonedSetPoisonsItsMaps) {
  const auto set = random_set(3, 300, 14, 8);
  const auto runner = make_runner();
  const Mirror mirror(*runner, set);
  const Mirror other(*runner, set);
  CoordinateSetRef poisoned = other.ref();
  const auto poison = runner->count(kPoison);
  poisoned.rows.count = poison.data();
  const cuda::DeviceWindow window(*runner, submanifold_window(3, axes(3, 3), axes(3, 1)));
  const cuda::CutRequest requests[] = {request_of(mirror.ref(), poisoned, window),
                                       request_of(poisoned, mirror.ref(), window),
                                       request_of(mirror, window)};
  const auto maps = cuda::cut_maps(*runner, requests);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(*maps[i].tiles().tiles.count, kPoison);
    EXPECT_EQ(*maps[i].entries().count, kPoison);
    EXPECT_EQ(*maps[i].pairs().pairs.count, kPoison);
  }
  expect_same_map(maps[2],
                  submanifold_map(set, submanifold_window(3, axes(3, 3), axes(3, 1)))->view(), 1);
}

}   // namespace
}   // namespace pumice::test
