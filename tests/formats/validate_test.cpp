// What somebody made wrong is said by part, place and value.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <pumice/formats/decompositions.hpp>

#include "graphs/random_pattern.hpp"
#include "support/message_of.hpp"

namespace pumice::test {
namespace {

constexpr const char* kTaken = "(nothing was thrown)";

/// 3 x 4, entries (0, 1), (0, 3), (2, 0), in an ELL of width 2.
class GivenParts : public testing::Test {
 protected:
  Csr pattern = PatternCase{"", 3, 4, {0, 0, 2}, {1, 3, 0}}.csr();
  std::vector<std::int64_t> row{0, 2}, column{1, 3, 0, -1}, entry{0, 1, 2, -1};
  PartShape shape{.width = 2};

  std::string said(std::vector<Part> more = {}) const {
    std::vector<Part> parts{{.shape = shape,
                             .row = i32(row),
                             .slot_begin = {},
                             .column = i32(column),
                             .entry = i64(entry),
                             .type_begin = {}}};
    for (Part& part : more)
      parts.push_back(std::move(part));
    return message_of([&] { formats::decompose(pattern.view(), std::move(parts)); });
  }
};

TEST_F(GivenParts, ThatAreRightAreTaken) {
  EXPECT_EQ(said(), kTaken);
  EXPECT_EQ(said({{.shape = {.width = 5},
                   .row = i32({}),
                   .slot_begin = {},
                   .column = i32({}),
                   .entry = i64({}),
                   .type_begin = {}}}),
            kTaken);
}

TEST_F(GivenParts, HoldEveryEntryOnce) {
  entry = {1, 0, 2, -1};
  EXPECT_EQ(said(),
            "decompose: part 0: entry[0] = 1 at row 0 and column 1, which the pattern has at row 0 "
            "and column 3: give it its row and column");
  entry = {0, 0, 2, -1};
  column = {1, 1, 0, -1};
  EXPECT_EQ(said(), "decompose: part 0: entry[1] = 0 stands twice: give each entry one position");
  column = {1, 3, 0, -1};
  entry = {0, -1, 2, -1};
  EXPECT_EQ(said(), "decompose: entry 1 of 3 is in no part: give each entry one position");
}

TEST_F(GivenParts, AreInRange) {
  entry = {0, 1, 3, -1};
  EXPECT_EQ(said(),
            "decompose: part 0: entry[2] = 3 where there are 3 entries: give numbers from 0 on, -1 "
            "for a hole");
  entry = {0, 1, 2, -1};
  column = {1, 4, 0, -1};
  EXPECT_EQ(said(),
            "decompose: part 0: entry[1] = 1 at row 0 and column 4 of 3 x 4: give -1 beyond the "
            "pattern");
  column = {1, -2, 0, -1};
  EXPECT_EQ(said(), "decompose: part 0: column[1] = -2: give numbers from 0 on, -1 for padding");
  column = {1, 3, 0, -1};
  row = {0, 3};
  EXPECT_EQ(said(), "Decomposed: part 0: row[1] = 3 where there are 3: give numbers from 0 on");
}

TEST_F(GivenParts, HavePaddingAtTheEndThatHoldsNoEntry) {
  column = {1, 3, -1, 0};
  entry = {0, 1, -1, 2};
  EXPECT_EQ(said(), "decompose: part 0: column[3] = 0 after padding: padding comes last in a line");
  column = {1, 3, 0, -1};
  entry = {0, 1, -1, 2};
  EXPECT_EQ(said(),
            "decompose: part 0: entry[3] = 2 in a slot of padding: give -1 there, or the slot a "
            "column");
}

TEST_F(GivenParts, AscendByRow) {
  row = {2, 0};
  column = {0, -1, 1, 3};
  entry = {2, -1, 0, 1};
  EXPECT_EQ(said(),
            "decompose: part 0: row[1] = 0 after 2: rows ascend, within each type where there are "
            "types");
}

TEST_F(GivenParts, HaveListsThatFitEachOther) {
  column = {1, 3, 0};
  EXPECT_EQ(said(),
            "Decomposed: part 0 has 3 slots for 2 lines of width 2: give as many as lines · width, "
            "and no bounds");
  column = {1, 3, 0, -1};
  entry = {0, 1, 2};
  EXPECT_EQ(said(),
            "Decomposed: part 0 has 3 numbers of entries for 4 slots of 1 positions: give 4");
  entry = {0, 1, 2, -1};
  shape.width = 0;
  EXPECT_EQ(said(),
            "Decomposed: part 0 has 0 bounds for 2 lines: give one more than lines, or a width");
  shape = {.block_rows = 1 << 20, .block_columns = 1 << 20, .width = 2};
  EXPECT_EQ(said(),
            "Decomposed: part 0 has blocks of 1048576 x 1048576: give at least 1 x 1 and at most "
            "67108864 positions");
}

TEST_F(GivenParts, HaveBoundsThatAscend) {
  const auto with_bounds = [&](const std::vector<std::int64_t>& bounds) {
    std::vector<Part> parts{{.shape = {},
                             .row = i32(row),
                             .slot_begin = i64(bounds),
                             .column = i32({1, 3, 0}),
                             .entry = i64({0, 1, 2}),
                             .type_begin = {}}};
    return message_of([&] { formats::decompose(pattern.view(), std::move(parts)); });
  };
  EXPECT_EQ(with_bounds({0, 2, 3}), kTaken);
  EXPECT_EQ(with_bounds({0, 4, 3}),
            "Decomposed: part 0: slot_begin[1] = 4 after 0: bounds ascend from 0 to 3");
  EXPECT_EQ(with_bounds({0, 2, 2}), "Decomposed: part 0: slot_begin ends at 2: give 3, the end");
}

TEST(Validate, AnotherPatternIsRefused) {
  const Csr pattern = PatternCase{"", 3, 4, {0, 0, 2}, {1, 3, 0}}.csr();
  const Csr other = PatternCase{"", 3, 4, {0, 0}, {1, 3}}.csr();
  EXPECT_EQ(message_of([&] { validate(formats::dcsr(pattern.view()), other.view()); }),
            "validate: 3 x 4 with 3 entries, of a pattern of 3 x 4 with 2: give the pattern it was "
            "cut from");
}

}   // namespace
}   // namespace pumice::test
