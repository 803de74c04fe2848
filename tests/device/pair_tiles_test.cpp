// Tiles of pairs and the pairs of each output row, beside the lists they are cut from.
// Covers pair_tiles of src/maps/cuda.
#include "formats/cuda/pair_tiles.hpp"

#include <gtest/gtest.h>

#include <pumice/formats/relation_tiles.hpp>
#include <pumice/maps/build.hpp>

#include "device/device_maps.hpp"
#include "device/device_sets.hpp"
#include "formats/synthetic_map.hpp"
#include "support/message_of.hpp"

namespace pumice::test {
namespace {

/// Lists where kernels can read them, with room for more pairs than there are.
struct DevicePairs {
  DevicePairs(const TestRunner& runner, const KernelMapView& map, std::int64_t spare,
              std::int64_t count_word)
      : begin(runner.copy(map.offset_begin)),
        in(runner.make<std::int32_t>(map.pairs() + spare)),
        out(runner.make<std::int32_t>(map.pairs() + spare)),
        count(runner.count(count_word)) {
    std::fill_n(in.data(), in.size(), 1 << 30);
    std::fill_n(out.data(), out.size(), 1 << 30);
    std::copy(map.in.begin(), map.in.end(), in.data());
    std::copy(map.out.begin(), map.out.end(), out.data());
  }
  PairListRef ref(std::int64_t offsets) const {
    return {.offset_begin = begin.data(),
            .in = in.data(),
            .out = out.data(),
            .pairs = {count.data(), in.size()},
            .offsets = static_cast<std::int32_t>(offsets)};
  }

  Buffer<std::int64_t> begin;
  Buffer<std::int32_t> in, out;
  Buffer<std::int64_t> count;
};

/// Every position of the tiles as a pair; `own`: of the numbers of pairs, which stand for their
/// output rows.
std::vector<DevicePair> pairs_of_tiles(const TileMapRef& tiles, const KernelMapView& map,
                                       bool own) {
  std::vector<DevicePair> pairs;
  const std::int64_t count = tiles.tiles.rows();
  std::int64_t full = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const TileRun run = tiles.tile_order[i];
    EXPECT_EQ(run.tile, i);
    EXPECT_EQ(run.entry_begin, i);
    EXPECT_EQ(run.entry_end, i + 1);
    EXPECT_EQ(run.split, 0);
    const TileEntry entry = tiles.entry[i];
    unsigned blocks = 0;
    bool ended = false;
    for (std::int32_t p = 0; p < tiles.tile_rows; ++p) {
      const std::int64_t at = i * tiles.tile_rows + p;
      const std::int32_t in = tiles.in_row[at];
      if (in < 0) {
        ended = true;
        EXPECT_EQ(tiles.out_row[at], -1);
        continue;
      }
      EXPECT_FALSE(ended) << "a gap before pair " << p;
      blocks |= 1u << p / kBlockRows;
      const std::int32_t out = tiles.out_row[at];
      pairs.emplace_back(entry.offset, own ? map.out[static_cast<std::size_t>(out)] : out, in);
    }
    EXPECT_EQ(unsigned{entry.blocks}, blocks);
    EXPECT_NE(blocks, 0u);
    full += ended ? 0 : 1;
  }
  EXPECT_GE(full, count - tiles.offsets) << "more than one tile of an offset is not full";
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

void expect_index(const std::int32_t* pair_of, const KernelMapView& map) {
  std::vector<std::int32_t> expected(static_cast<std::size_t>(map.out_rows * map.offsets), -1);
  for (std::int64_t k = 0; k < map.offsets; ++k) {
    for (auto i = map.offset_begin[static_cast<std::size_t>(k)];
         i < map.offset_begin[static_cast<std::size_t>(k) + 1]; ++i)
      expected[static_cast<std::size_t>(map.out[static_cast<std::size_t>(i)] * map.offsets + k)] =
          static_cast<std::int32_t>(i);
  }
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), pair_of));
}

void expect_tiles(TestRunner& runner, const KernelMapView& map, std::int32_t tile_rows,
                  std::int64_t spare) {
  SCOPED_TRACE(::testing::Message() << map.pairs() << " pairs of " << map.offsets << " offsets, "
                                    << tile_rows << " a tile");
  const DevicePairs pairs(runner, map, spare, map.pairs());
  const cuda::PairRows rows{{nullptr, map.in_rows}, {nullptr, map.out_rows}};
  for (const bool own : {false, true}) {
    const cuda::PairTiles tiles(runner, pairs.ref(map.offsets), rows,
                                {.tile_rows = tile_rows, .own_rows = own});
    ASSERT_FALSE(tiles.ref().tiles.poisoned());
    EXPECT_EQ(pairs_of_tiles(tiles.ref(), map, own), pairs_of(map));
  }
  expect_index(cuda::index_pairs(runner, pairs.ref(map.offsets), map.out_rows).data(), map);
}

PUMICE_DEVICE_TEST(PairTiles, HoldEveryPairOnce) {
  const auto runner = make_runner();
  for (const std::int64_t rows : {0, 1, 31, 33, 64, 300}) {
    const SyntheticMap map = synthetic_map(27, rows + 7, rows, 0.6, false, 3);
    expect_tiles(*runner, map.view(), 64, 0);
    expect_tiles(*runner, map.view(), 128, 1000);
  }
}

PUMICE_DEVICE_TEST(PairTiles, TakeAnyVolumeAndEmptyOffsets) {
  const auto runner = make_runner();
  for (const std::int64_t offsets : {1, 2, 8, 343, 1500}) {
    const SyntheticMap map = synthetic_map(offsets, 40, 50, 0.2, true, 4);
    expect_tiles(*runner, map.view(), 64, 5);
  }
  SyntheticMap first_is_empty = synthetic_map(5, 100, 100, 0.5, true, 5);
  const std::int64_t skipped = first_is_empty.offset_begin[1];
  for (std::int64_t& begin : first_is_empty.offset_begin)
    begin = std::max<std::int64_t>(begin - skipped, 0);
  first_is_empty.in.erase(first_is_empty.in.begin(), first_is_empty.in.begin() + skipped);
  first_is_empty.out.erase(first_is_empty.out.begin(), first_is_empty.out.begin() + skipped);
  expect_tiles(*runner, first_is_empty.view(), 64, 0);
}

PUMICE_DEVICE_TEST(PairTiles, ArePoisonWherePairsAre) {
  const auto runner = make_runner();
  const SyntheticMap map = synthetic_map(27, 60, 70, 0.5, true, 6);
  for (const std::int64_t count : {map.view().pairs() + 1, kPoison}) {
    const DevicePairs pairs(*runner, map.view(), 0, count);
    const cuda::PairTiles tiles(*runner, pairs.ref(27), {{nullptr, 60}, {nullptr, 70}}, {});
    EXPECT_TRUE(tiles.ref().tiles.poisoned());
  }
}

/// From the kernels that build the lists.
PUMICE_DEVICE_TEST(PairTiles, CutTheListsOfADeviceMap) {
  const auto set = random_set(3, 500, 10, 4);
  const KernelWindow window = submanifold_window(3, axes(3, 3), axes(3, 1));
  const auto cpu = submanifold_map(set, window);
  const auto runner = make_runner();
  const Mirror mirror(*runner, set);
  const cuda::DeviceWindow on_device(*runner, window);
  const cuda::CutRequest requests[] = {
      {.map = {mirror.ref(), mirror.ref(), &on_device}, .pairs = cuda::PairOptions{}}};
  const auto maps = cuda::cut_maps(*runner, requests);
  const cuda::PairTiles tiles(*runner, maps[0].pairs(), {mirror.ref().rows, mirror.ref().rows},
                              {.tile_rows = 256});
  EXPECT_EQ(pairs_of_tiles(tiles.ref(), cpu->view(), false), pairs_of(cpu->view()));
  expect_index(cuda::index_pairs(*runner, maps[0].pairs(), 503).data(), cpu->view());
}

PUMICE_DEVICE_TEST(DevicePairTiles, MoreOffsetsThanAnEntryCanNameAreRefused) {
  const auto runner = make_runner();
  const auto count = runner->count(0);
  const PairListRef pairs{.pairs = {count.data(), 0}, .offsets = 65537};
  EXPECT_EQ(message_of([&] { cuda::PairTiles(*runner, pairs, {}, {}); }),
            "a kernel of 65537 offsets; on a device the most is 65536, so take a smaller kernel");
}

}   // namespace
}   // namespace pumice::test
