// Coarsening, union, pruning, reordering and batch ranges against std::set and std::map.
#include <pumice/coords/set_operations.hpp>

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "coords/cells.hpp"

namespace pumice::test {
namespace {

CoordinateSetPtr make(const Cells& cells, int dimension, const CoordinateOptions& options = {}) {
  return CoordinateSet::create(tensor_of(cells, dimension), options);
}

std::set<Cell> as_set(const Cells& cells) {
  return {cells.begin(), cells.end()};
}

std::set<Cell> coarse_cells(const Cells& cells, const Axes& factor) {
  std::set<Cell> coarse;
  for (Cell cell : cells) {
    for (std::size_t axis = 0; axis + 1 < cell.size(); ++axis) {
      cell[axis + 1] =
          static_cast<std::int32_t>(std::floor(static_cast<double>(cell[axis + 1]) / factor[axis]));
    }
    coarse.insert(cell);
  }
  return coarse;
}

TEST(Coarsen, KeepsOneSiteForEachOccupiedCoarseCell) {
  Random random(1);
  constexpr Axes kFactors[] = {{1, 1, 1, 1}, {2, 2, 2, 2}, {4, 4, 4, 4},        {3, 3, 3, 3},
                               {6, 2, 4, 8}, {1, 2, 2, 3}, {128, 128, 128, 128}};
  for (int dimension = 1; dimension <= 4; ++dimension) {
    for (const Axes& factor : kFactors) {
      for (const std::size_t size : {0u, 1u, 31u, 33u, 700u}) {
        const Cells cells = distinct_cells(random_cells(size, dimension, 30, random), random);
        const auto coarse = coarsen(*make(cells, dimension, {.stride = {1, 2, 3, 4}}), factor);
        EXPECT_EQ(as_set(cells_of(*coarse)), coarse_cells(cells, factor));
        EXPECT_TRUE(coarse->in_key_order());
        EXPECT_EQ(coarse->batch_size(), make(cells, dimension)->batch_size());
        for (std::size_t at = 0; at < static_cast<std::size_t>(dimension); ++at) {
          EXPECT_EQ(coarse->stride()[at], static_cast<int>(at + 1) * factor[at]);
        }
      }
    }
  }
}

TEST(Coarsen, CanBeRepeatedBeyondTheBitsOfTheFirstLayout) {
  Random random(2);
  const Cells cells = distinct_cells(random_cells(400, 3, 60000, random), random);
  auto set = make(cells, 3);
  Axes factor = axes(3, 1);
  for (int level = 0; level < 18; ++level) {
    set = coarsen(*set, axes(3, 2));
    for (auto& f : factor)
      f *= 2;
    ASSERT_EQ(as_set(cells_of(*set)), coarse_cells(cells, factor)) << "level " << level;
  }
  EXPECT_LE(set->size(), 3 * 8);   // an octant each, per batch item
}

TEST(Coarsen, RoundsTheSpatialShapeUp) {
  const auto set = make({{0, 6, 0}, {0, 0, 8}}, 2, {.spatial_shape = Axes{7, 9}});
  const auto coarse = coarsen(*set, {2, 3, 1, 1});
  ASSERT_TRUE(coarse->spatial_shape().has_value());
  EXPECT_EQ((*coarse->spatial_shape())[0], 4);
  EXPECT_EQ((*coarse->spatial_shape())[1], 3);
}

TEST(Coarsen, RefusesFactorsBelowOneAndStridesBeyondInt32) {
  const auto set = make({{0, 6, 0}}, 2, {.stride = {1 << 20, 1, 1, 1}});
  EXPECT_EQ(message_of([&] {
              coarsen(*set, {2, 0, 1, 1});
            }),
            "factor[1] = 0: a coarse cell holds at least 1 cell an axis");
  EXPECT_EQ(message_of([&] {
              coarsen(*set, {1 << 12, 2, 1, 1});
            }),
            "factor[0] = 4096 makes a stride of 4294967296 cells; the largest is 2147483647");
}

TEST(Unite, HoldsTheSitesOfEither) {
  Random random(3);
  for (int dimension = 1; dimension <= 4; ++dimension) {
    for (const std::size_t size : {0u, 1u, 33u, 500u}) {
      for (const std::size_t other_size : {0u, 31u, 400u}) {
        const Cells left = distinct_cells(random_cells(size, dimension, 6, random), random);
        Cells right = distinct_cells(random_cells(other_size, dimension, 6, random), random);
        for (Cell& cell : right)
          cell[1] += size == 500 ? 900 : 2;   // far apart, or overlapping
        const UnionSet both = unite(*make(left, dimension), *make(right, dimension));
        std::set<Cell> expected = as_set(left);
        expected.insert(right.begin(), right.end());
        const Cells rows = cells_of(*both.set);
        EXPECT_EQ(as_set(rows), expected);
        EXPECT_EQ(rows.size(), expected.size());
        ASSERT_EQ(both.left_row.extent(0), static_cast<std::int64_t>(left.size()));
        ASSERT_EQ(both.right_row.extent(0), static_cast<std::int64_t>(right.size()));
        for (std::size_t i = 0; i < left.size(); ++i) {
          EXPECT_EQ(rows[static_cast<std::size_t>(both.left_row.span<std::int32_t>()[i])], left[i]);
        }
        for (std::size_t i = 0; i < right.size(); ++i) {
          EXPECT_EQ(rows[static_cast<std::size_t>(both.right_row.span<std::int32_t>()[i])],
                    right[i]);
        }
      }
    }
  }
}

TEST(Unite, WantsSetsOfOneGrid) {
  const auto set = make({{0, 1, 1}}, 2, {.spatial_shape = Axes{4, 4}});
  EXPECT_EQ(message_of([&] {
              unite(*set, *make({{0, 1}}, 1));
            }),
            "dimension 2 on the left, 1 on the right; unite sets of one grid");
  EXPECT_EQ(message_of([&] {
              unite(*set, *make({{0, 1, 1}}, 2, {.stride = {1, 2, 1, 1}}));
            }),
            "stride[1] is 1 on the left, 2 on the right; unite sets of one level");
  EXPECT_EQ(message_of([&] {
              unite(*set, *make({{0, 1, 1}}, 2, {.spatial_shape = Axes{4, 5}}));
            }),
            "spatial_shape[1] is 4 on the left, 5 on the right; unite sets of one grid");
  EXPECT_TRUE(unite(*set, *set).set->spatial_shape().has_value());
  EXPECT_FALSE(unite(*set, *make({{0, 9, 9}}, 2)).set->spatial_shape().has_value());
}

TEST(PruneSet, KeepsRowsInTheirOldOrder) {
  Random random(4);
  for (int dimension = 1; dimension <= 4; ++dimension) {
    for (const std::size_t size : {0u, 1u, 33u, 600u}) {
      for (const bool in_key_order : {false, true}) {
        auto set =
            make(distinct_cells(random_cells(size, dimension, 9, random), random), dimension);
        if (in_key_order) set = coarsen(*set, axes(dimension, 1));
        const Cells cells = cells_of(*set);
        std::vector<std::uint8_t> keep(cells.size());
        Cells expected;
        std::vector<std::int32_t> kept;
        for (std::size_t row = 0; row < cells.size(); ++row) {
          keep[row] = random.integer(0, 2) == 0 ? 0 : 255;
          if (keep[row] == 0) continue;
          expected.push_back(cells[row]);
          kept.push_back(static_cast<std::int32_t>(row));
        }
        const PrunedSet pruned =
            prune_set(*set, Tensor::from(std::span<const std::uint8_t>(keep),
                                         Shape{static_cast<std::int64_t>(keep.size())}));
        EXPECT_EQ(cells_of(*pruned.set), expected);
        EXPECT_TRUE(std::equal(kept.begin(), kept.end(), pruned.kept.span<std::int32_t>().begin(),
                               pruned.kept.span<std::int32_t>().end()));
        for (std::size_t row = 0; row < expected.size(); ++row) {
          EXPECT_EQ(pruned.set->find(expected[row]), static_cast<std::int32_t>(row));
        }
        EXPECT_EQ(pruned.set->batch_size(), set->batch_size());
      }
    }
  }
}

TEST(PruneSet, WantsOneFlagForEachRow) {
  const auto set = make({{0, 1, 1}}, 2);
  EXPECT_EQ(message_of([&] { prune_set(*set, Tensor::zeros(Shape{2}, DType::u8)); }),
            "keep: u8 [2]; give one u8 for each of the 1 rows");
  EXPECT_EQ(message_of([&] { prune_set(*set, Tensor::zeros(Shape{1}, DType::f32)); }),
            "keep: f32 [1]; give one u8 for each of the 1 rows");
}

/// `count` rows in a random order.
Tensor shuffled_rows(std::int64_t count, Random& random) {
  Tensor rows(Shape{count}, DType::i32);
  auto* row = rows.data<std::int32_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    row[i] = static_cast<std::int32_t>(i);
    std::swap(row[i], row[random.integer(0, i)]);
  }
  return rows;
}

TEST(Reorder, PutsEverySiteIntoTheRowItIsGiven) {
  Random random(6);
  for (int dimension = 1; dimension <= 4; ++dimension) {
    for (const std::size_t size : {0u, 1u, 31u, 33u, 600u}) {
      const auto drawn =
          make(distinct_cells(random_cells(size, dimension, 9, random), random), dimension);
      const auto set = coarsen(*drawn, axes(dimension, 1));
      const Tensor row = shuffled_rows(set->size(), random);
      const auto reordered = reorder(*set, row);
      const Cells before = cells_of(*set);
      const Cells after = cells_of(*reordered);
      ASSERT_EQ(after.size(), before.size());
      for (std::size_t rank = 0; rank < before.size(); ++rank) {
        const std::int32_t to = row.span<std::int32_t>()[rank];
        EXPECT_EQ(after[static_cast<std::size_t>(to)], before[rank]);
        EXPECT_EQ(reordered->find(before[rank]), to);
      }
      EXPECT_TRUE(reordered->layout() == set->layout());
      EXPECT_EQ(reordered->batch_size(), set->batch_size());
      EXPECT_TRUE(reordered->stride() == set->stride());
    }
  }
}

TEST(Reorder, WantsEveryRowOnceAndASetInKeyOrder) {
  const auto rows = [](std::vector<std::int32_t> values) {
    return Tensor::from(std::span<const std::int32_t>(values),
                        Shape{static_cast<std::int64_t>(values.size())});
  };
  const auto set = coarsen(*make({{0, 1, 1}, {0, 2, 2}}, 2), axes(2, 1));
  EXPECT_EQ(message_of([&] { reorder(*set, rows({0})); }),
            "row: i32 [1]; give one i32 for each of the 2 rows");
  EXPECT_EQ(message_of([&] {
              reorder(*set, rows({1, 1}));
            }),
            "row[1] = 1; name each of the 2 rows once");
  EXPECT_EQ(message_of([&] {
              reorder(*set, rows({-1, 0}));
            }),
            "row[0] = -1; name each of the 2 rows once");
  EXPECT_TRUE(reorder(*set, rows({0, 1}))->in_key_order());
  EXPECT_EQ(message_of([&] {
              reorder(*reorder(*set, rows({1, 0})), rows({0, 1}));
            }),
            "reorder: the rows of the set are in an order already; give a set in key order");
}

TEST(BatchRanges, CutRanksByBatchItem) {
  const auto ranges = [](const CoordinateSet& set) {
    const Tensor all = batch_ranges(set);
    return std::vector<std::int64_t>(all.span<std::int64_t>().begin(),
                                     all.span<std::int64_t>().end());
  };
  using Ranges = std::vector<std::int64_t>;
  EXPECT_EQ(ranges(*make({{3, 1}, {0, 2}, {3, -1}, {1, 0}}, 1)), (Ranges{0, 1, 2, 2, 4}));
  EXPECT_EQ(ranges(*make({{0, 2}}, 1, {.batch_size = 3})), (Ranges{0, 1, 1, 1}));
  EXPECT_EQ(ranges(*make({}, 1)), (Ranges{0}));
  EXPECT_EQ(ranges(*make({}, 1, {.batch_size = 2})), (Ranges{0, 0, 0}));
}

}   // namespace
}   // namespace pumice::test
