// Distinct coordinates, and which row each input fell into.
#include <pumice/coords/unique.hpp>

#include <map>

#include <gtest/gtest.h>

#include "coords/cells.hpp"

namespace pumice::test {
namespace {

TEST(UniqueCoordinates, SendEveryInputToTheRowOfItsCell) {
  Random random(1);
  for (int dimension = 1; dimension <= 4; ++dimension) {
    for (const std::size_t size : {0u, 1u, 31u, 33u, 2000u}) {
      const Cells cells = random_cells(size, dimension, 5, random);
      const UniqueCoordinates unique = unique_coordinates(tensor_of(cells, dimension));
      const Cells rows = cells_of(*unique.set);
      std::map<Cell, std::int32_t> first;
      for (std::size_t i = 0; i < cells.size(); ++i) {
        first.emplace(cells[i], static_cast<std::int32_t>(i));
        const auto row = static_cast<std::size_t>(unique.row_of.span<std::int32_t>()[i]);
        ASSERT_LT(row, rows.size());
        EXPECT_EQ(rows[row], cells[i]);
      }
      ASSERT_EQ(rows.size(), first.size());
      EXPECT_TRUE(unique.set->in_key_order());
      for (std::size_t row = 0; row < rows.size(); ++row) {
        EXPECT_EQ(unique.first.span<std::int32_t>()[row], first.at(rows[row]));
      }
    }
  }
}

TEST(UniqueCoordinates, OfOneCellOverAndOverIsThatCell) {
  const UniqueCoordinates unique = unique_coordinates(tensor_of(Cells(65537, {0, -7, 7}), 2));
  EXPECT_EQ(cells_of(*unique.set), (Cells{{0, -7, 7}}));
  EXPECT_EQ(unique.first.span<std::int32_t>()[0], 0);
  EXPECT_EQ(unique.row_of.extent(0), 65537);
}

TEST(UniqueCoordinates, CheckTheirInputAsSetsDo) {
  EXPECT_EQ(message_of([] {
              unique_coordinates(tensor_of({{-1, 0}}, 1));
            }),
            "coordinates: batch index -1 in row 0; number batch items from 0 in the first column, "
            "and put a column of 0 there where "
            "coordinates have none");
}

}   // namespace
}   // namespace pumice::test
