// What is made of a map that was matched before, beside what is made of it afresh, and how many
// launches that takes.
// Covers map_formats and cut_batch of src/formats/cuda.
#include "formats/cuda/map_formats.hpp"
#include "formats/cuda/cut_wanted.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/maps/build.hpp>

#include "device/device_maps.hpp"
#include "device/device_sets.hpp"

namespace pumice::test {
namespace {

using Launches = std::vector<std::string>;

const KernelWindow kCube = submanifold_window(3, axes(3, 3), axes(3, 1));

KernelWindow halving() {
  return {.dimension = 3, .size = axes(3, 2), .stride = axes(3, 2)};
}

/// What ran since the last time that was asked.
class Since {
 public:
  explicit Since(const TestRunner& runner) : runner_(runner), seen_(runner.launches().size()) {}
  Launches launches() {
    const Launches now(runner_.launches().begin() + static_cast<std::ptrdiff_t>(seen_),
                       runner_.launches().end());
    seen_ = runner_.launches().size();
    return now;
  }

 private:
  const TestRunner& runner_;
  std::size_t seen_;
};

cuda::CutMap build(TestRunner& runner, const cuda::CutRequest& request) {
  return std::move(cuda::cut_maps(runner, std::span(&request, 1)).front());
}

cuda::CutRequest tiles_of(cuda::CutRequest request, std::int32_t tile_rows) {
  request.tiles = cuda::TileOptions{.tile_rows = tile_rows};
  request.pairs.reset();
  return request;
}

cuda::CutRequest pairs_of(cuda::CutRequest request) {
  request.tiles.reset();
  request.pairs = cuda::PairOptions{};
  return request;
}

const Launches kFill{"fill_ranges"};
const Launches kMatch{"fill_ranges", "match_maps", "gray_keys_u32"};
const Launches kSmallSort{"sort_small_u32"};
const Launches kCut{"cut_tiles"};
const Launches kList{"list_pairs"};

Launches operator+(Launches first, const Launches& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

PUMICE_DEVICE_TEST(DeviceMatchedMaps, ACentredMapIsMatchedOnceForTilesOfAnyHeightAndForPairs) {
  for (const bool large : {false, true}) {
    const auto set = large ? random_set(3, 5000, 30, 3) : random_set(3, 700, 12, 3);
    const auto cpu = submanifold_map(set, kCube);
    const auto runner = make_runner();
    const Mirror mirror(*runner, set);
    const cuda::DeviceWindow window(*runner, kCube);
    Since since(*runner);
    cuda::CutRequest request{
        .map = {mirror.ref(), mirror.ref(), &window}, .is_centred = true, .keeps_order = true};
    const auto first = build(*runner, tiles_of(request, 128));
    // Keys are counted where they are written.
    const Launches sort =
        large ? Launches{"sort_scatter_u32", "sort_scatter_u32", "sort_scatter_u32"} : kSmallSort;
    EXPECT_EQ(since.launches(), kMatch + sort + kCut);
    request.earlier = first.ordered();
    const auto pairs = build(*runner, pairs_of(request));
    EXPECT_EQ(since.launches(), kFill + kList);
    const auto lower = build(*runner, tiles_of(request, 64));
    EXPECT_EQ(since.launches(), kFill + kCut);
    const auto higher = build(*runner, tiles_of(request, 256));
    EXPECT_EQ(since.launches(), kFill + kCut);
    EXPECT_EQ(runner->record().code, kFine);

    expect_same_pairs(pairs.pairs(), cpu->view());
    expect_same_map(first, cpu->view(), 1);
    request.earlier.reset();
    expect_same_tiles(lower.tiles(), build(*runner, tiles_of(request, 64)).tiles());
    expect_same_tiles(higher.tiles(), build(*runner, tiles_of(request, 256)).tiles());
  }
}

PUMICE_DEVICE_TEST(DeviceMatchedMaps, TheTilesOfACentredMapAreThoseOfItsTranspose) {
  const KernelWindow cross = submanifold_window(3, {3, 5, 3}, {1, 1, 2});
  for (const KernelWindow& shape : {kCube, cross}) {
    const auto set = random_set(3, 900, 14, 6);
    const auto runner = make_runner();
    const Mirror mirror(*runner, set);
    const cuda::DeviceWindow window(*runner, shape);
    const auto map = build(*runner, {.map = {mirror.ref(), mirror.ref(), &window},
                                     .tiles = cuda::TileOptions{},
                                     .is_centred = true});
    const TileMapRef tiles = map.tiles();
    const TileMapRef mirrored = map.mirrored_tiles();
    std::vector<DevicePair> pairs;
    for (std::int64_t i = 0; i < mirrored.tiles.rows(); ++i) {
      const TileRun run = mirrored.tile_order[i];
      for (std::int32_t e = run.entry_begin; e < run.entry_end; ++e) {
        EXPECT_EQ(mirrored.entry[e].blocks, tiles.entry[e].blocks);
        for (int p = 0; p < mirrored.tile_rows; ++p) {
          const std::int32_t in = mirrored.in_row[std::int64_t{e} * mirrored.tile_rows + p];
          const std::int32_t out =
              mirrored.out_row[std::int64_t{run.tile} * mirrored.tile_rows + p];
          if (in >= 0) pairs.emplace_back(mirrored.entry[e].offset, out, in);
        }
      }
    }
    std::sort(pairs.begin(), pairs.end());
    EXPECT_EQ(pairs, pumice::test::pairs_of(transposed(submanifold_map(set, shape)->view())));
  }
}

PUMICE_DEVICE_TEST(DeviceMatchedMaps, AStridedMapIsMatchedOnceForEachDirection) {
  const auto fine = random_set(3, 900, 14, 8);
  const KernelWindow shape = halving();
  const auto cpu = strided_map(fine, shape, StridedOutputs::cell);
  const auto runner = make_runner();
  const Mirror in(*runner, fine);
  const Mirror out(*runner, cpu->out());
  const cuda::DeviceWindow window(*runner, shape);
  Since since(*runner);
  cuda::CutRequest request{.map = {in.ref(), out.ref(), &window}, .keeps_order = true};
  const auto tiles = build(*runner, tiles_of(request, 128));
  EXPECT_EQ(since.launches(), kMatch + kSmallSort + kCut);
  cuda::CutRequest back{.map = {out.ref(), in.ref(), &window, Reach::in_to_out},
                        .keeps_order = true};
  const auto tiles_back = build(*runner, tiles_of(back, 128));
  EXPECT_EQ(since.launches(), kMatch + kSmallSort + kCut);
  request.earlier = tiles.ordered();
  const auto pairs = build(*runner, pairs_of(request));
  EXPECT_EQ(since.launches(), kFill + kList);
  back.earlier = tiles_back.ordered();
  const auto pairs_back = build(*runner, pairs_of(back));
  const auto lower_back = build(*runner, tiles_of(back, 64));
  EXPECT_EQ(since.launches(), kFill + kList + kFill + kCut);
  EXPECT_EQ(runner->record().code, kFine);

  expect_same_map(tiles, cpu->view(), 1);
  expect_same_pairs(pairs.pairs(), cpu->view());
  const auto cpu_back = transposed_map(cpu->out(), fine, shape);
  expect_same_map(tiles_back, cpu_back->view(), 1);
  expect_same_pairs(pairs_back.pairs(), cpu_back->view());
  back.earlier.reset();
  expect_same_tiles(lower_back.tiles(), build(*runner, tiles_of(back, 64)).tiles());
}

PUMICE_DEVICE_TEST(DeviceMatchedMaps, KernelsOfSeveralWordsAreMatchedOnceToo) {
  const auto set = random_set(3, 900, 12, 5);
  const KernelWindow shape = submanifold_window(3, axes(3, 5), axes(3, 1));
  const auto runner = make_runner();
  const Mirror mirror(*runner, set);
  const cuda::DeviceWindow window(*runner, shape);
  cuda::CutRequest request{.map = {mirror.ref(), mirror.ref(), &window}, .keeps_order = true};
  const auto first = build(*runner, tiles_of(request, 128));
  request.earlier = first.ordered();
  const auto lower = build(*runner, tiles_of(request, 64));
  const auto pairs = build(*runner, pairs_of(request));
  expect_same_pairs(pairs.pairs(), submanifold_map(set, shape)->view());
  request.earlier.reset();
  expect_same_tiles(lower.tiles(), build(*runner, tiles_of(request, 64)).tiles());
}

PUMICE_DEVICE_TEST(DeviceMatchedMaps, RequestsOfOneMapShareASearchAndAnOrder) {
  const auto set = random_set(3, 700, 12, 3);
  const auto cpu = submanifold_map(set, kCube);
  const auto runner = make_runner();
  const Mirror mirror(*runner, set);
  const cuda::DeviceWindow window(*runner, kCube);
  const cuda::CutRequest map{.map = {mirror.ref(), mirror.ref(), &window}, .is_centred = true};
  cuda::CutRequest unsorted = tiles_of(map, 128);
  unsorted.tiles->sort_by_mask = false;
  cuda::CutRequest unsorted_lower = unsorted;
  unsorted_lower.tiles->tile_rows = 64;
  cuda::CutRequest split = tiles_of(map, 128);
  split.tiles->splits = 3;
  cuda::CutRequest split_higher = split;
  split_higher.tiles->tile_rows = 256;

  Since since(*runner);
  const std::vector<cuda::CutRequest> alike{tiles_of(map, 128), tiles_of(map, 64),
                                            tiles_of(map, 256), pairs_of(map)};
  const auto shared = cuda::cut_maps(*runner, alike);
  EXPECT_EQ(since.launches(), kMatch + kSmallSort + kCut + kList);
  // Another order is made for itself; it is sorted together with the first.
  const std::vector<cuda::CutRequest> mixed{tiles_of(map, 128), unsorted,     split,
                                            unsorted_lower,     split_higher, tiles_of(map, 64),
                                            pairs_of(map)};
  const auto of_mixed = cuda::cut_maps(*runner, mixed);
  EXPECT_EQ(since.launches(), kMatch + kSmallSort + kCut + kList);
  EXPECT_EQ(runner->record().code, kFine);

  const auto expect_as_alone = [&](const std::vector<cuda::CutRequest>& requests,
                                   const std::vector<cuda::CutMap>& made) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE(i);
      const cuda::CutMap alone = build(*runner, requests[i]);
      if (!requests[i].tiles) {
        expect_same_pairs(made[i].pairs(), cpu->view());
        continue;
      }
      expect_same_tiles(made[i].tiles(), alone.tiles());
      expect_same_tiles(made[i].mirrored_tiles(), alone.mirrored_tiles());
      expect_same_map(made[i], cpu->view(), requests[i].tiles->splits);
    }
  };
  expect_as_alone(alike, shared);
  expect_as_alone(mixed, of_mixed);
}

PUMICE_DEVICE_TEST(DeviceMatchedMaps, ABatchTakesWhatAnEarlierOneFoundOfTheSameMap) {
  const auto set = random_set(3, 300, 9, 4);
  const auto cpu = submanifold_map(set, kCube);
  const auto runner = make_runner();
  const Mirror mirror(*runner, set);
  const cuda::DeviceWindow window(*runner, kCube);
  const cuda::CutRequest map{.map = {mirror.ref(), mirror.ref(), &window}};
  std::vector<cuda::CutRequest> requests;
  for (int i = 0; i < kMaxTasks + 1; ++i)
    requests.push_back(tiles_of(map, i % 2 == 0 ? 128 : 64));
  requests.push_back(pairs_of(map));
  Since since(*runner);
  const auto made = cuda::cut_maps(*runner, requests);
  EXPECT_EQ(since.launches(), kMatch + kSmallSort + kCut + kFill + kCut + kList);
  EXPECT_EQ(runner->record().code, kFine);
  expect_same_map(made[kMaxTasks - 1], cpu->view(), 1);
  expect_same_map(made[kMaxTasks], cpu->view(), 1);
  expect_same_pairs(made.back().pairs(), cpu->view());
}

/// The pairs that are in memory of a device.
std::vector<DevicePair> read_back(const PairListRef& pairs, StreamView stream) {
  const auto begin = copy_to_host(pairs.offset_begin, std::int64_t{pairs.offsets} + 1, stream);
  std::vector<DevicePair> result;
  if (begin.back() == 0) return result;
  const auto in = copy_to_host(pairs.in, begin.back(), stream);
  const auto out = copy_to_host(pairs.out, begin.back(), stream);
  for (std::size_t k = 0; k + 1 < begin.size(); ++k) {
    for (auto i = static_cast<std::size_t>(begin[k]); i < static_cast<std::size_t>(begin[k + 1]);
         ++i)
      result.emplace_back(static_cast<int>(k), out[i], in[i]);
  }
  return result;
}

std::vector<DevicePair> in_order(const KernelMapView& map) {
  std::vector<DevicePair> result;
  for (std::size_t k = 0; k < static_cast<std::size_t>(map.offsets); ++k) {
    for (auto i = static_cast<std::size_t>(map.offset_begin[k]);
         i < static_cast<std::size_t>(map.offset_begin[k + 1]); ++i)
      result.emplace_back(static_cast<int>(k), map.out[i], map.in[i]);
  }
  return result;
}

TEST(MapFormatsGpu, pairs_are_those_of_the_cpu_whatever_was_asked_for_before) {
  PUMICE_NEEDS_GPU();
  const Stream stream(Device{DeviceKind::cuda, 0});
  const auto fine = random_set(3, 900, 14, 8);
  const auto on_device = CoordinateSet::copy_to(fine, stream.view());
  const KernelWindow point = submanifold_window(3, axes(3, 1), axes(3, 1));
  for (const bool tiles_first : {false, true}) {
    const auto check = [&](const KernelMapPtr& map, const KernelMapPtr& cpu) {
      cuda::MapFormats& formats = cuda::MapFormats::of(*map);
      const auto tiles = [&](bool is_transposed, const cuda::TileCut& cut) -> const TileMapRef& {
        return formats.tiles(is_transposed, cut, cuda::OffsetOrder::any);
      };
      if (tiles_first) {
        const TileMapRef& first = tiles(false, {.tile_rows = 128});
        EXPECT_EQ(&tiles(false, {.tile_rows = 128}), &first);
        EXPECT_EQ(tiles(false, {.tile_rows = 64}).tile_rows, 64);
        tiles(true, {.tile_rows = 64});
      }
      EXPECT_EQ(read_back(formats.pairs(false), stream.view()), in_order(cpu->view()));
      const PairListRef back = formats.pairs(true);
      EXPECT_EQ(back.in, formats.pairs(false).out);
    };
    check(submanifold_map(on_device, kCube), submanifold_map(fine, kCube));
    check(submanifold_map(on_device, point), submanifold_map(fine, point));
    check(strided_map(on_device, halving(), StridedOutputs::cell),
          strided_map(fine, halving(), StridedOutputs::cell));
  }
}

TEST(MapFormatsGpu, a_window_is_on_a_device_once) {
  PUMICE_NEEDS_GPU();
  const Stream stream(Device{DeviceKind::cuda, 0});
  const Stream other(Device{DeviceKind::cuda, 0});
  const auto window = cuda::DeviceWindow::on(stream.view(), kCube);
  EXPECT_EQ(cuda::DeviceWindow::on(stream.view(), kCube), window);
  EXPECT_EQ(cuda::DeviceWindow::on(other.view(), kCube), window);
  EXPECT_NE(cuda::DeviceWindow::on(stream.view(), halving()), window);
  const auto fine = random_set(3, 500, 10, 4);
  const KernelMapPtr map = submanifold_map(CoordinateSet::copy_to(fine, other.view()), kCube);
  EXPECT_EQ(read_back(cuda::MapFormats::of(*map).pairs(false), other.view()),
            in_order(submanifold_map(fine, kCube)->view()));
}

TEST(MapFormatsGpu, a_centred_map_has_one_set_of_tiles_for_both_directions) {
  PUMICE_NEEDS_GPU();
  const Stream stream(Device{DeviceKind::cuda, 0});
  const auto set = CoordinateSet::copy_to(random_set(3, 700, 12, 2), stream.view());
  const KernelMapPtr map = submanifold_map(set, kCube);
  cuda::MapFormats& formats = cuda::MapFormats::of(*map);
  const TileMapRef back = formats.tiles(true, {.tile_rows = 128}, cuda::OffsetOrder::any);
  const TileMapRef forward = formats.tiles(false, {.tile_rows = 128}, cuda::OffsetOrder::any);
  EXPECT_EQ(forward.in_row, back.in_row);
  EXPECT_NE(forward.entry, back.entry);
  const auto asked = formats.asked();
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_FALSE(asked.front().wanted.is_transposed);

  const TileMapRef ascending =
      formats.tiles(true, {.tile_rows = 128}, cuda::OffsetOrder::ascending);
  EXPECT_NE(ascending.in_row, back.in_row);
  EXPECT_EQ(formats.asked().size(), 2u);
  const TileRun run = copy_to_host(ascending.tile_order, 1, stream.view()).front();
  const auto entries = copy_to_host(ascending.entry, run.entry_end, stream.view());
  for (auto e = static_cast<std::size_t>(run.entry_begin) + 1; e < entries.size(); ++e)
    EXPECT_LT(entries[e - 1].offset, entries[e].offset);
  const TileRun mirrored = copy_to_host(back.tile_order, 1, stream.view()).front();
  const auto descending = copy_to_host(back.entry, mirrored.entry_end, stream.view());
  for (auto e = static_cast<std::size_t>(mirrored.entry_begin) + 1; e < descending.size(); ++e)
    EXPECT_GT(descending[e - 1].offset, descending[e].offset);
}

/// The pairs that tiles in memory of a device hold.
std::vector<DevicePair> read_back(const TileMapRef& tiles, StreamView stream) {
  std::vector<DevicePair> result;
  const std::int64_t count = copy_to_host(tiles.tiles.count, 1, stream).front();
  const auto runs = copy_to_host(tiles.tile_order, count, stream);
  std::int64_t last = 0;
  for (const TileRun& run : runs)
    last = std::max<std::int64_t>(last, run.entry_end);
  const auto entries = copy_to_host(tiles.entry, last, stream);
  const auto in = copy_to_host(tiles.in_row, last * tiles.tile_rows, stream);
  const auto out = copy_to_host(tiles.out_row, count * tiles.tile_rows, stream);
  for (const TileRun& run : runs) {
    for (auto e = static_cast<std::size_t>(run.entry_begin);
         e < static_cast<std::size_t>(run.entry_end); ++e) {
      for (std::size_t p = 0; p < static_cast<std::size_t>(tiles.tile_rows); ++p) {
        const auto rows = static_cast<std::size_t>(tiles.tile_rows);
        const std::int32_t row = in[e * rows + p];
        if (row >= 0)
          result.emplace_back(entries[e].offset, out[static_cast<std::size_t>(run.tile) * rows + p],
                              row);
      }
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

TEST(MapFormatsGpu, what_is_wanted_of_several_maps_is_cut_at_once) {
  PUMICE_NEEDS_GPU();
  const Stream stream(Device{DeviceKind::cuda, 0});
  const KernelWindow point = submanifold_window(3, axes(3, 1), axes(3, 1));
  const auto maps_of = [&](const CoordinateSetPtr& fine) {
    std::vector<KernelMapPtr> maps{submanifold_map(fine, kCube)};
    maps.push_back(strided_map(fine, halving(), StridedOutputs::cell));
    maps.push_back(maps.front());   // another layer on the same map
    maps.push_back(submanifold_map(maps[1]->out(), kCube));
    maps.push_back(submanifold_map(fine, point));
    return maps;
  };
  struct Ask {
    std::size_t map;
    bool is_transposed;
    std::int32_t tile_rows;   // 0: pairs
  };
  const std::vector<Ask> asks{{0, false, 128}, {0, false, 64},  {0, true, 64},
                              {0, false, 0},   {1, false, 128}, {1, true, 64},
                              {1, true, 0},    {3, false, 64},  {4, false, 0}};
  const auto check = [&](const std::vector<KernelMapPtr>& maps,
                         const std::vector<KernelMapPtr>& cpu) {
    for (const Ask& ask : asks) {
      const auto view = [&](const KernelMapPtr& map) {
        return ask.is_transposed ? transposed(map->view()) : map->view();
      };
      std::vector<DevicePair> expected = pumice::test::pairs_of(view(cpu[ask.map]));
      cuda::MapFormats& formats = cuda::MapFormats::of(*maps[ask.map]);
      if (ask.tile_rows > 0) {
        EXPECT_EQ(read_back(formats.tiles(ask.is_transposed, {.tile_rows = ask.tile_rows},
                                          cuda::OffsetOrder::any),
                            stream.view()),
                  expected);
        continue;
      }
      std::vector<DevicePair> pairs = read_back(formats.pairs(ask.is_transposed), stream.view());
      std::sort(pairs.begin(), pairs.end());
      EXPECT_EQ(pairs, expected);
    }
  };
  for (const std::size_t seed : {8u, 9u, 10u}) {
    const auto fine = random_set(3, 300 * seed, 14, seed);
    const auto maps = maps_of(CoordinateSet::copy_to(fine, stream.view()));
    std::vector<cuda::CutWanted> wanted;
    for (const Ask& ask : asks) {
      wanted.push_back({.map = maps[ask.map].get(), .is_transposed = ask.is_transposed});
      if (ask.tile_rows > 0) wanted.back().tiles = cuda::TileCut{.tile_rows = ask.tile_rows};
    }
    const std::vector<cuda::CutWanted> first(wanted.begin(), wanted.begin() + 2);
    if (seed == 10) cuda::cut_wanted(first);   // some of it is there already
    cuda::cut_wanted(wanted);
    cuda::cut_wanted(wanted);
    for (const KernelMapPtr& map : maps) {
      cuda::MapFormats& formats = cuda::MapFormats::of(*map);
      EXPECT_TRUE(formats.asked().empty()) << "cut, and not used yet";
      if (map == maps.back()) continue;
      const bool is_cube = map == maps.front();
      const bool halves = map == maps[1];
      const cuda::MapFormats::Wanted all{
          is_cube  ? std::vector<cuda::TilesWanted>{{false, {128}}, {false, {64}}}
          : halves ? std::vector<cuda::TilesWanted>{{false, {128}}, {true, {64}}}
                   : std::vector<cuda::TilesWanted>{{false, {64}}},
          is_cube || halves};
      EXPECT_TRUE(formats.missing(all).empty());
      EXPECT_EQ(formats.missing({{{false, 192, 1}}, true}).size(), 1u);
    }
    check(maps, maps_of(fine));
  }
  cuda::cut_wanted({});
}

}   // namespace
}   // namespace pumice::test
