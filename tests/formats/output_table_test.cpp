// The output-stationary table holds each pair once, in its output's row, whatever the order.
#include <pumice/formats/output_table.hpp>

#include <gtest/gtest.h>

#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>

#include "formats/synthetic_map.hpp"

namespace pumice::test {
namespace {

struct Case {
  std::int64_t offsets;
  std::int64_t in_rows;
  std::int64_t out_rows;
  double density;
};

const Case kCases[] = {
    {1, 0, 0, 1.0},       {27, 0, 31, 1.0},       {27, 33, 0, 1.0},        {1, 1, 1, 1.0},
    {27, 31, 33, 0.3},    {64, 33, 31, 1.0},      {65, 33, 31, 0.5},       {125, 31, 31, 0.2},
    {343, 700, 900, 0.1}, {1, 65537, 65537, 1.0}, {27, 65537, 65537, 0.3}, {8, 30000, 65537, 0.9},
};

std::vector<Meeting> sorted_meetings(const OutputTable& table) {
  std::vector<Meeting> all;
  for (int split = 0; split < table.splits(); ++split) {
    for (std::int64_t row = 0; row < table.out_rows(); ++row) {
      for (std::int64_t k = table.first_offset(split); k < table.first_offset(split + 1); ++k) {
        const std::int32_t in = table.table()[row * table.offsets() + k];
        if (in >= 0) all.push_back({k, in, table.order(split)[row]});
      }
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

TEST(OutputTable, HoldsEveryPairOnceInItsOutputsRow) {
  for (const Case& c : kCases) {
    const SyntheticMap map =
        synthetic_map(c.offsets, c.in_rows, c.out_rows, c.density, c.offsets % 2 == 0, 21);
    for (const KernelMapView& view : {map.view(), transposed(map.view())}) {
      for (const bool sorted : {false, true}) {
        for (const int splits : {1, 3}) {
          if (splits > c.offsets) continue;
          SCOPED_TRACE(testing::Message() << "offsets " << c.offsets << ", rows " << view.in_rows
                                          << " to " << view.out_rows << ", splits " << splits);
          const OutputTable table(view, sorted, splits);
          ASSERT_EQ(test::sorted_meetings(view), sorted_meetings(table));
          for (int split = 0; split < splits; ++split) {   // each order is a permutation
            std::vector<std::int32_t> rows(table.order(split), table.order(split) + view.out_rows);
            std::sort(rows.begin(), rows.end());
            for (std::size_t i = 0; i < rows.size(); ++i) {
              ASSERT_EQ(rows[i], static_cast<std::int32_t>(i));
            }
          }
        }
      }
    }
  }
}

TEST(OutputTable, TilesOfAllSplitsTogetherHoldEveryPairOnce) {
  for (const Case& c : kCases) {
    const SyntheticMap map = synthetic_map(c.offsets, c.in_rows, c.out_rows, c.density, false, 22);
    for (const int splits : {1, 2}) {
      if (splits > c.offsets) continue;
      const OutputTable table(map.view(), true, splits);
      std::vector<Meeting> all;
      for (int split = 0; split < splits; ++split) {
        const RelationTiles tiles = table.tiles(split, 128);
        const std::vector<Meeting> part = test::sorted_meetings(tiles.view());
        all.insert(all.end(), part.begin(), part.end());
      }
      std::sort(all.begin(), all.end());
      ASSERT_EQ(all, test::sorted_meetings(map.view()));
    }
  }
}

TEST(OutputTable, ATileTakesPartWithAllItsRowsOrNone) {
  const SyntheticMap map = synthetic_map(27, 5000, 5000, 0.05, false, 23);
  const OutputTable table(map.view(), true, 1);
  const RelationTiles owner = table.tiles(0, 64);
  const RelationTilesView tiles = owner.view();
  std::int64_t skipped = 0;
  for (std::int64_t tile = 0; tile < tiles.tiles; ++tile) {
    const std::int64_t rows = std::min<std::int64_t>(64, 5000 - tile * 64);
    for (std::int64_t k = 0; k < 27; ++k) {
      const std::int64_t begin = tiles.begin[tile * 27 + k];
      const std::int64_t size = tiles.begin[tile * 27 + k + 1] - begin;
      ASSERT_TRUE(size == 0 || size == rows);
      skipped += size == 0 ? 1 : 0;
      for (std::int64_t i = 0; i < size; ++i)
        ASSERT_EQ(tiles.local_out[begin + i], i);
    }
  }
  EXPECT_GT(skipped, 0);
  EXPECT_DOUBLE_EQ(table.density(64), static_cast<double>(map.view().pairs()) /
                                          static_cast<double>(tiles.begin[tiles.tiles * 27]));
}

TEST(OutputTable, SortingByMaskWastesFewerMultiplies) {
  // Neighbours of real scans come in few patterns; eight kinds of outputs in random order here.
  SyntheticMap map{27, 8192, 8192, {0}, {}, {}, {}, {}};
  Random random(24);
  std::vector<std::int32_t> kind(8192);
  for (std::int32_t& value : kind)
    value = static_cast<std::int32_t>(random.integer(0, 7));
  for (std::int64_t k = 0; k < 27; ++k) {
    for (std::int32_t row = 0; row < 8192; ++row) {
      if ((k * 5 + kind[static_cast<std::size_t>(row)]) % 8 < 2) {
        map.in.push_back(row);
        map.out.push_back(row);
      }
    }
    map.offset_begin.push_back(static_cast<std::int64_t>(map.in.size()));
  }
  const OutputTable unsorted(map.view(), false, 1);
  const OutputTable sorted(map.view(), true, 1);
  EXPECT_LT(unsorted.density(64), 0.3);   // a tile of 64 has every kind
  EXPECT_GT(sorted.density(64), 0.9);     // all but the tiles between two kinds are full
}

TEST(OutputTable, SortedByMaskTheRarestOffsetLeads) {
  // Offset 0 meets every output, offset 1 outputs 1 and 3, offset 2 output 2 alone.
  SyntheticMap map{3, 4, 4, {0, 4, 6, 7}, {0, 1, 2, 3, 0, 1, 0}, {0, 1, 2, 3, 1, 3, 2}, {}, {}};
  const OutputTable table(map.view(), true, 1);
  const std::vector<std::int32_t> order(table.order(0), table.order(0) + 4);
  EXPECT_EQ(order, (std::vector<std::int32_t>{2, 1, 3, 0}));
}

TEST(OutputTable, IsTheSameForEveryNumberOfThreads) {
  const SyntheticMap map = synthetic_map(125, 20000, 20000, 0.1, false, 25);
  set_threads(1);
  const OutputTable one(map.view(), true, 2);
  for (const int count : {2, 3}) {
    set_threads(count);
    const OutputTable several(map.view(), true, 2);
    EXPECT_TRUE(std::equal(one.table(), one.table() + 20000 * 125, several.table()));
    EXPECT_TRUE(std::equal(one.order(0), one.order(0) + 2 * 20000, several.order(0)));
  }
  set_threads(0);
}

TEST(OutputTable, MoreSplitsThanOffsetsAreRefused) {
  const SyntheticMap map = synthetic_map(3, 4, 4, 1.0, true, 26);
  EXPECT_THROW(OutputTable(map.view(), false, 4), UserError);
  EXPECT_THROW(OutputTable(map.view(), false, 0), UserError);
}

}   // namespace
}   // namespace pumice::test
