// The tiles of a map hold each of its pairs once, in the order the skeleton relies on.
#include <pumice/formats/relation_tiles.hpp>

#include <gtest/gtest.h>

#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/maps/build.hpp>

#include "formats/synthetic_map.hpp"

namespace pumice::test {
namespace {

struct Case {
  std::int64_t offsets;
  std::int64_t in_rows;
  std::int64_t out_rows;
  double density;
};

// The sizes that break loops, and the kernel volumes of 1³, 3³, 5³ and 7³.
const Case kCases[] = {
    {1, 0, 0, 1.0},          {27, 0, 0, 1.0},         {27, 0, 31, 1.0},
    {27, 33, 0, 1.0},        {1, 1, 1, 1.0},          {27, 1, 1, 0.5},
    {27, 31, 33, 0.3},       {27, 33, 31, 1.0},       {125, 31, 31, 0.2},
    {343, 33, 33, 1.0},      {343, 700, 900, 0.05},   {1, 65537, 65537, 1.0},
    {27, 65537, 65537, 0.3}, {27, 40000, 65537, 0.1}, {125, 5000, 65537, 0.02},
};

void expect_well_formed(const KernelMapView& map, std::int64_t tile_rows) {
  const RelationTiles owner(map, tile_rows);
  const RelationTilesView tiles = owner.view();
  ASSERT_EQ(tiles.out_rows, map.out_rows);
  ASSERT_EQ(tiles.offsets, map.offsets);
  ASSERT_EQ(tiles.tiles, (map.out_rows + tile_rows - 1) / tile_rows);
  ASSERT_EQ(tiles.begin[0], 0);
  ASSERT_EQ(tiles.begin[tiles.tiles * tiles.offsets], map.pairs());
  for (std::int64_t tile = 0; tile < tiles.tiles; ++tile) {
    const std::int64_t rows = std::min(tile_rows, map.out_rows - tile * tile_rows);
    for (std::int64_t k = 0; k < tiles.offsets; ++k) {
      const std::int64_t* const range = tiles.begin + tile * tiles.offsets + k;
      ASSERT_LE(range[0], range[1]);
      std::int32_t last = -1;
      for (std::int64_t pair = range[0]; pair < range[1]; ++pair) {
        ASSERT_GT(tiles.local_out[pair], last);
        last = tiles.local_out[pair];
      }
      ASSERT_LT(last, rows);
    }
  }
  ASSERT_EQ(sorted_meetings(tiles), sorted_meetings(map));
}

TEST(RelationTiles, HoldEveryPairOnceInAscendingOrder) {
  for (const Case& c : kCases) {
    for (const bool ordered_rows : {true, false}) {
      const SyntheticMap map =
          synthetic_map(c.offsets, c.in_rows, c.out_rows, c.density, ordered_rows, 11);
      for (const std::int64_t tile_rows : {1, 33, 512}) {
        if (tile_rows == 1 && c.out_rows > 1000) continue;   // 65,537 tiles of 125 offsets each
        SCOPED_TRACE(testing::Message() << "offsets " << c.offsets << ", rows " << c.in_rows
                                        << " to " << c.out_rows << ", tile_rows " << tile_rows);
        expect_well_formed(map.view(), tile_rows);
        expect_well_formed(transposed(map.view()), tile_rows);
      }
    }
  }
}

TEST(RelationTiles, AMapWithoutAnyOrderIsCutToo) {
  for (const std::int64_t rows : {0, 1, 31, 33, 65537}) {
    SyntheticMap map = synthetic_map(27, rows, rows, 0.4, false, 12);
    Random random(13);
    for (std::int64_t k = 0; k < map.offsets; ++k) {   // the pairs of an offset in random order
      const auto begin = static_cast<std::size_t>(map.offset_begin[static_cast<std::size_t>(k)]);
      const auto size =
          static_cast<std::size_t>(map.offset_begin[static_cast<std::size_t>(k) + 1]) - begin;
      const std::vector<std::int32_t> order = shuffled(static_cast<std::int64_t>(size), random);
      const std::vector<std::int32_t> in(map.in), out(map.out);
      for (std::size_t i = 0; i < size; ++i) {
        map.in[begin + i] = in[begin + static_cast<std::size_t>(order[i])];
        map.out[begin + i] = out[begin + static_cast<std::size_t>(order[i])];
      }
    }
    KernelMapView view = map.view();
    view.sorted_by_out = false;
    expect_well_formed(view, 256);
  }
}

TEST(RelationTiles, TheTransposeOfASubmanifoldMapIsReadBackwards) {
  for (const std::int32_t extent : {1, 3, 5}) {
    for (const std::int64_t points : {0, 1, 33, 5000}) {
      Random random(17);
      std::vector<std::int32_t> sites;
      for (const std::int32_t cell : shuffled(32 * 32 * 32, random)) {
        if (static_cast<std::int64_t>(sites.size()) == points * 4) break;
        sites.insert(sites.end(), {0, cell % 32 - 16, cell / 32 % 32 - 16, cell / 1024 - 16});
      }
      const KernelMapPtr map =
          submanifold_map(CoordinateSet::create(Tensor::from<std::int32_t>(sites, {points, 4})),
                          submanifold_window(3, axes(3, extent), axes(3, 1)));
      const KernelMapView view = transposed(map->view());
      ASSERT_TRUE(view.has_identity_offset);
      expect_well_formed(view, 64);
      expect_well_formed(map->view(), 64);
    }
  }
}

TEST(RelationTiles, AreTheSameForEveryNumberOfThreads) {
  const SyntheticMap map = synthetic_map(27, 65537, 65537, 0.3, false, 14);
  for (const KernelMapView& view : {map.view(), transposed(map.view())}) {
    set_threads(1);
    const RelationTiles one(view, 512);
    for (const int count : {2, 3}) {
      set_threads(count);
      const RelationTiles several(view, 512);
      const RelationTilesView a = one.view();
      const RelationTilesView b = several.view();
      EXPECT_TRUE(std::equal(a.begin, a.begin + a.tiles * a.offsets + 1, b.begin));
      EXPECT_TRUE(std::equal(a.in, a.in + view.pairs(), b.in));
      EXPECT_TRUE(std::equal(a.local_out, a.local_out + view.pairs(), b.local_out));
    }
  }
  set_threads(0);
}

TEST(RelationTiles, ATileNeedsARow) {
  const SyntheticMap map = synthetic_map(1, 4, 4, 1.0, true, 15);
  EXPECT_THROW(RelationTiles(map.view(), 0), UserError);
}

TEST(RelationTiles, ARepeatedOutputIsRefused) {
  SyntheticMap map = synthetic_map(1, 4, 4, 1.0, true, 16);
  map.out = {2, 1, 2, 0};
  KernelMapView view = map.view();
  view.sorted_by_out = false;
  EXPECT_THROW(RelationTiles(view, 4), UserError);
}

}   // namespace
}   // namespace pumice::test
