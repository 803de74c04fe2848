// Coordinate sets keep the caller's rows, find every site and refuse what they cannot hold.
#include <pumice/coords/coordinate_set.hpp>

#include <bit>
#include <limits>
#include <map>

#include <gtest/gtest.h>

#include <pumice/core/parallel.hpp>

#include "coords/cells.hpp"

namespace pumice::test {
namespace {

constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();

CoordinateSetPtr make(const Cells& cells, int dimension, const CoordinateOptions& options = {}) {
  return CoordinateSet::create(tensor_of(cells, dimension), options);
}

/// Keys ascend, ranks lead to rows, blocks hold what the keys say.
void expect_consistent(const CoordinateSet& set) {
  const auto keys = set.sorted_keys();
  const BlockIndexRef& index = set.index();
  const Cells cells = cells_of(set);
  ASSERT_EQ(static_cast<std::int64_t>(keys.size()), set.size());
  std::int64_t cells_in_blocks = 0;
  for (std::int64_t block = 0; block < index.blocks; ++block) {
    ASSERT_EQ(index.base_rank[block], cells_in_blocks);
    ASSERT_EQ(index.find_block(index.block_key[block]), block);
    ASSERT_TRUE(block == 0 || index.block_key[block - 1] < index.block_key[block]);
    cells_in_blocks += std::popcount(index.occupancy[block]);
  }
  ASSERT_EQ(cells_in_blocks, set.size());
  ASSERT_GE(std::int64_t{index.slot_mask} + 1, 2 * index.blocks);
  for (std::size_t rank = 0; rank < keys.size(); ++rank) {
    ASSERT_TRUE(rank == 0 || keys[rank - 1] < keys[rank]);
    const std::size_t row =
        index.order == nullptr ? rank : static_cast<std::size_t>(index.order[rank]);
    ASSERT_EQ(encode_key(set.layout(), cells[row][0], cells[row].data() + 1), keys[rank]);
    ASSERT_EQ(index.find_row(keys[rank]), static_cast<std::int32_t>(row));
  }
}

TEST(CoordinateSet, FindsEverySiteAndNoOther) {
  Random random(1);
  for (int dimension = 1; dimension <= 4; ++dimension) {
    for (const std::size_t size : {0u, 1u, 2u, 31u, 33u, 500u}) {
      const Cells cells = distinct_cells(random_cells(size, dimension, 12, random), random);
      const auto set = make(cells, dimension);
      expect_consistent(*set);
      EXPECT_EQ(cells_of(*set), cells);
      std::map<Cell, std::int32_t> row_of;
      for (std::size_t row = 0; row < cells.size(); ++row) {
        row_of.emplace(cells[row], static_cast<std::int32_t>(row));
      }
      for (const Cell& probe : random_cells(1000, dimension, 20, random)) {
        const auto found = row_of.find(probe);
        EXPECT_EQ(set->find(probe), found == row_of.end() ? -1 : found->second);
      }
    }
  }
}

TEST(CoordinateSet, HoldsManySites) {
  Random random(2);
  Cells cells = distinct_cells(random_cells(70000, 3, 400, random), random);
  ASSERT_GE(cells.size(), 65537u);
  cells.resize(65537);
  const auto set = make(cells, 3);
  expect_consistent(*set);
  EXPECT_EQ(set->rows().capacity(), 65537);
}

TEST(CoordinateSet, HoldsTheCornersOfInt32) {
  const Cells corners{{0, kMost}, {0, kLeast}, {1, 0}, {1, kMost}, {0, -1}};
  const auto line = make(corners, 1);
  expect_consistent(*line);
  EXPECT_EQ(line->find(Cell{0, kLeast}), 1);
  EXPECT_EQ(line->find(Cell{0, kLeast + 1}), -1);
  const auto far = make({{0, kMost, kMost, kMost}, {0, kMost - 1, kMost, kMost}}, 3);
  expect_consistent(*far);
  EXPECT_EQ(far->find(Cell{0, kLeast, kLeast, kLeast}), -1);
  const auto low = make({{0, kLeast, kLeast, kLeast}, {0, kLeast, kLeast, kLeast + 63}}, 3);
  expect_consistent(*low);
  EXPECT_TRUE(can_halve(low->layout()));
}

TEST(CoordinateSet, CanBeHalvedAsOftenAsBitsAllow) {
  KeyLayout small = make({{0, -5, 3, 1}, {0, 40, 2, 0}}, 3)->layout();
  for (int i = 0; i < kDefaultHalvings; ++i) {
    ASSERT_TRUE(can_halve(small)) << i;
    small = halved(small);
  }
  // 21 bits an axis fill the key: there is no room for an aligned origin.
  const auto wide = make({{0, -1, -1, -1}, {0, (1 << 21) - 2, (1 << 21) - 2, (1 << 21) - 2}}, 3);
  expect_consistent(*wide);
  EXPECT_EQ(key_bits(wide->layout()), 63);
}

TEST(CoordinateSet, RemembersWhenRowsAreInKeyOrder) {
  const Cells sorted{{0, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, 1, 1}, {1, 0, 0}};
  const auto set = make(sorted, 2);
  EXPECT_TRUE(set->in_key_order());
  expect_consistent(*set);
  EXPECT_FALSE(make({{0, 1, 1}, {0, 0, 0}}, 2)->in_key_order());
}

TEST(CoordinateSet, FromSortedKeysIsTheSetOfTheirCells) {
  Random random(3);
  const auto source = make(distinct_cells(random_cells(300, 3, 15, random), random), 3);
  Buffer<std::uint64_t> keys(source->size());
  std::copy(source->sorted_keys().begin(), source->sorted_keys().end(), keys.data());
  const auto set = CoordinateSet::from_sorted_keys(std::move(keys), source->layout(), {});
  expect_consistent(*set);
  EXPECT_TRUE(set->in_key_order());
  EXPECT_EQ(set->batch_size(), source->batch_size());
  const Cells cells = cells_of(*source);
  for (std::int64_t rank = 0; rank < set->size(); ++rank) {
    EXPECT_EQ(cells_of(*set)[static_cast<std::size_t>(rank)],
              cells[static_cast<std::size_t>(source->index().order[rank])]);
  }
}

TEST(CoordinateSet, CountsBatchItemsUnlessTold) {
  EXPECT_EQ(make({{2, 1}, {0, 1}}, 1)->batch_size(), 3);
  EXPECT_EQ(make({{2, 1}, {0, 1}}, 1, {.batch_size = 9})->batch_size(), 9);
  EXPECT_EQ(make({}, 1)->batch_size(), 0);
  EXPECT_EQ(make({{0, 1}}, 1)->find(Cell{1, 1}), -1);
  EXPECT_EQ(make({{0, 1}}, 1)->find(Cell{-1, 1}), -1);
}

TEST(CoordinateSet, TakesItsLayoutFromDeclaredBounds) {
  Random random(5);
  const CoordinateBounds bounds{.low = axes(4, -20), .high = axes(4, 20)};
  for (int dimension = 1; dimension <= 4; ++dimension) {
    const CoordinateOptions options{.batch_size = 4, .bounds = bounds};
    const KeyLayout layout = make({}, dimension, options)->layout();
    for (const std::size_t size : {1u, 31u, 33u, 500u}) {
      const Cells cells = distinct_cells(random_cells(size, dimension, 20, random), random);
      const auto set = make(cells, dimension, options);
      expect_consistent(*set);
      EXPECT_EQ(set->layout(), layout);
      EXPECT_EQ(cells_of(*set), cells);
      const auto measured = make(cells, dimension);
      for (const Cell& probe : cells)
        EXPECT_EQ(set->find(probe), measured->find(probe));
    }
  }
  Cells many = distinct_cells(random_cells(90000, 4, 20, random), random);
  ASSERT_GE(many.size(), 65537u);
  many.resize(65537);
  expect_consistent(*make(many, 4, {.batch_size = 4, .bounds = bounds}));
  const CoordinateOptions whole{.batch_size = 1,
                                .bounds = CoordinateBounds{{kLeast, 0}, {kMost, kMost}}};
  expect_consistent(*make({{0, kMost, 0}, {0, kLeast, kMost}}, 2, whole));
}

TEST(CoordinateSet, NamesTheRowOutsideDeclaredBounds) {
  const CoordinateOptions options{.batch_size = 2, .bounds = CoordinateBounds{{-4, 0}, {3, 9}}};
  EXPECT_EQ(message_of([&] {
              make({{1, -4, 0}, {0, 3, 9}, {0, 4, 9}, {0, -9, 0}}, 2, options);
            }),
            "coordinates: 4 on axis 0 in row 2 lies outside the declared bounds, -4 to 3; crop the "
            "points or declare wider bounds");
  EXPECT_EQ(message_of([&] {
              make({{0, 0, 0}, {0, 0, kLeast}}, 2, options);
            }),
            "coordinates: -2147483648 on axis 1 in row 1 lies outside the declared bounds, 0 to 9; "
            "crop the points or declare wider bounds");
  EXPECT_EQ(message_of([&] {
              make({{0, 0, 0}, {2, 0, 0}}, 2, options);
            }),
            "coordinates: batch index 2 in row 1 where batch_size = 2; number batch items from 0 "
            "and raise batch_size to the number there are");
  EXPECT_EQ(message_of([&] {
              make({{-1, 0, 0}}, 2, options);
            }),
            "coordinates: batch index -1 in row 0 where batch_size = 2; number batch items from 0 "
            "and raise batch_size to the number there are");
  EXPECT_EQ(message_of([] { make({}, 2, {.bounds = CoordinateBounds{}}); }),
            "bounds are declared without batch_size; declare the number of batch items too");
  EXPECT_EQ(message_of([] {
              make({}, 2, {.batch_size = 1, .bounds = CoordinateBounds{{0, 5}, {9, 4}}});
            }),
            "bounds on axis 1 go from 5 to 4; give the smallest coordinate first");
  EXPECT_EQ(
      message_of([] {
        make({{0, 6}}, 1,
             {.spatial_shape = Axes{6}, .batch_size = 1, .bounds = CoordinateBounds{{-9}, {9}}});
      }),
      "coordinates: 6 on axis 0 in row 0 lies outside the declared bounds, 0 to 5; crop the "
      "points or declare wider bounds");
}

TEST(CoordinateSet, SameRowsComparesSitesOrderAndLevel) {
  const Cells cells{{0, 4, 1}, {0, 1, 2}};
  const auto set = make(cells, 2);
  EXPECT_TRUE(set->same_rows(*set));
  EXPECT_TRUE(set->same_rows(*make(cells, 2)));
  EXPECT_FALSE(set->same_rows(*make({cells[1], cells[0]}, 2)));
  EXPECT_FALSE(set->same_rows(*make({cells[0]}, 2)));
  EXPECT_FALSE(set->same_rows(*make(cells, 2, {.stride = {2, 2, 1, 1}})));
  EXPECT_TRUE(set->same_rows(*make(cells, 2, {.stride = {1, 1, 7, 7}})));   // axes there are not
}

TEST(CoordinateSet, IsTheSameForAnyNumberOfThreads) {
  Random random(4);
  const Cells cells = distinct_cells(random_cells(50000, 3, 80, random), random);
  std::vector<CoordinateSetPtr> sets;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    sets.push_back(make(cells, 3));
    const auto first = sets.front()->sorted_keys();
    const auto keys = sets.back()->sorted_keys();
    EXPECT_TRUE(std::equal(keys.begin(), keys.end(), first.begin(), first.end()));
    EXPECT_TRUE(std::equal(sets.back()->index().order, sets.back()->index().order + keys.size(),
                           sets.front()->index().order));
  }
  set_threads(0);
}

TEST(CoordinateSet, NamesBothRowsOfADuplicate) {
  EXPECT_EQ(message_of([] {
              make({{0, 5, -2}, {1, 5, -2}, {0, 0, 0}, {0, 5, -2}}, 2);
            }),
            "coordinates: rows 0 and 3 are both (batch 0; 5, -2); a site has one row, so drop one "
            "of them or merge their features first");
}

TEST(CoordinateSet, NamesTheRowThatIsOutside) {
  EXPECT_EQ(message_of([] {
              make({{0, 1}, {-3, 1}}, 1);
            }),
            "coordinates: batch index -3 in row 1; number batch items from 0 in the first column, "
            "and put a column of 0 there where "
            "coordinates have none");
  EXPECT_EQ(message_of([] {
              make({{0, 1}, {4, 1}}, 1, {.batch_size = 4});
            }),
            "coordinates: batch index 4 in row 1 where batch_size = 4; raise batch_size to 5 or "
            "drop it");
  EXPECT_EQ(message_of([] {
              make({{0, 1, 1}, {0, 1, 9}}, 2, {.spatial_shape = Axes{8, 9}});
            }),
            "coordinates: 9 on axis 1 in row 1 lies outside spatial_shape, which has 9 cells "
            "there; crop the points, shift them to 0 or drop spatial_shape");
  EXPECT_EQ(message_of([] {
              make({{0, -1, 1}}, 2, {.spatial_shape = Axes{8, 9}});
            }),
            "coordinates: -1 on axis 0 in row 0 lies outside spatial_shape, which has 8 cells "
            "there; crop the points, shift them to 0 or drop spatial_shape");
}

TEST(CoordinateSet, RefusesWhatDoesNotFitAKey) {
  expect_consistent(*make({{0, kLeast, 0}, {0, kMost, kMost}}, 2));   // 63 bits
  EXPECT_THROW(
      make({}, 2, {.batch_size = 1, .bounds = CoordinateBounds{{kLeast, kLeast}, {kMost, kMost}}}),
      UserError);
  EXPECT_EQ(message_of([] {
              make({{0, kLeast, -1}, {0, kMost, kMost}}, 2);
            }),
            "coordinates span 4294967296 x 2147483649 cells in 1 batch items, which takes 64 bits "
            "of key where 63 are there; crop the range or use larger cells");
}

TEST(CoordinateSet, RefusesOtherShapesAndTypes) {
  EXPECT_EQ(message_of([] {
              CoordinateSet::create(Tensor::zeros(Shape{3, 6}, DType::i32));
            }),
            "coordinates: shape = [3, 6]; expected [N, 1 + D], the batch index and then D = 1 to 4 "
            "axes");
  EXPECT_EQ(message_of([] { CoordinateSet::create(Tensor::zeros(Shape{3}, DType::i32)); }),
            "coordinates: shape = [3]; expected [N, 1 + D], the batch index and then D = 1 to 4 "
            "axes");
  EXPECT_EQ(message_of([] {
              CoordinateSet::create(Tensor::zeros(Shape{3, 4}, DType::i64));
            }),
            "coordinates: dtype = i64; convert them to i32");
  EXPECT_EQ(message_of([] {
              make({{0, 1}}, 1, {.stride = {0, 1, 1, 1}});
            }),
            "stride[0] = 0: a cell is at least 1 cell of the finest level long");
  EXPECT_EQ(message_of([] {
              make({{0, 1}}, 1, {.spatial_shape = Axes{0}});
            }),
            "spatial_shape[0] = 0: every extent of the grid must be at least 1");
  EXPECT_EQ(message_of([] {
              make({{0, 1}}, 1)->find(Cell{0, 1, 2});
            }),
            "coordinate: 3 numbers for a set of dimension 1; give the batch index and then one "
            "number an axis");
}

TEST(CoordinateSet, RefusesKeysThatAreNotSorted) {
  const KeyLayout layout = make({{0, 0}, {0, 9}}, 1)->layout();
  Buffer<std::uint64_t> keys(3);
  keys[0] = 1;
  keys[1] = 4;
  keys[2] = 4;
  EXPECT_EQ(message_of([&] { CoordinateSet::from_sorted_keys(std::move(keys), layout, {}); }),
            "keys: the key at position 2 is not above its predecessor; sort them and remove "
            "duplicates");
}

}   // namespace
}   // namespace pumice::test
