// Patterns keep every entry once, in the order in which they were given, under its number.
#include <pumice/graphs/csr.hpp>

#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/random.hpp>

#include "graphs/random_pattern.hpp"
#include "support/message_of.hpp"

namespace pumice::test {
namespace {

using Pair = std::pair<std::int64_t, std::int64_t>;

/// (row, column) of each entry, by its number.
std::vector<Pair> pairs_of(const CsrView& pattern) {
  std::vector<Pair> pairs(static_cast<std::size_t>(pattern.entries()), {-1, -1});
  for (std::int64_t row = 0; row < pattern.rows; ++row) {
    for (std::int64_t place = pattern.begin_of(row); place < pattern.end_of(row); ++place)
      pairs[static_cast<std::size_t>(pattern.number_of(place))] = {
          row, pattern.column[static_cast<std::size_t>(place)]};
  }
  return pairs;
}

TEST(Csr, HasTheEntriesThatItWasMadeOf) {
  for (const PatternCase& one : pattern_cases()) {
    SCOPED_TRACE(one.name);
    const Csr csr = one.csr();
    check_pattern(csr.view(), "test");
    EXPECT_EQ(pairs_of(csr.view()), one.pairs());
    const Csr narrow(one.rows, one.columns, i32(one.row), i32(one.column));
    EXPECT_EQ(pairs_of(narrow.view()), one.pairs());
  }
}

TEST(Csr, KeepsTheOrderWithinARow) {
  const std::vector<std::int64_t> row{1, 0, 1, 1, 0}, column{2, 1, 0, 2, 0};
  const Csr csr(2, 3, i64(row), i64(column));
  EXPECT_EQ(std::vector(csr.view().column.begin(), csr.view().column.end()),
            (std::vector<std::int32_t>{1, 0, 2, 0, 2}));
  EXPECT_EQ(std::vector(csr.view().entry.begin(), csr.view().entry.end()),
            (std::vector<std::int64_t>{1, 4, 0, 2, 3}));
}

TEST(Csr, TheTransposeHasTheSameEntriesTheOtherWayRound) {
  for (const PatternCase& one : pattern_cases()) {
    SCOPED_TRACE(one.name);
    const Csr csr = one.csr();
    const Csr back = transposed(csr.view());
    check_pattern(back.view(), "test");
    EXPECT_EQ(back.view().rows, one.columns);
    EXPECT_EQ(back.view().columns, one.rows);
    std::vector<Pair> turned = pairs_of(back.view());
    for (Pair& pair : turned)
      std::swap(pair.first, pair.second);
    EXPECT_EQ(turned, one.pairs());
    const Csr again = transposed(back.view());
    EXPECT_EQ(pairs_of(again.view()), one.pairs());
  }
}

TEST(Csr, RefusesEntriesThatLeadNowhere) {
  const auto said = [](std::int64_t rows, std::int64_t columns, std::vector<std::int64_t> row,
                       std::vector<std::int64_t> column) {
    return message_of([&] { Csr(rows, columns, i64(row), i64(column)); });
  };
  EXPECT_EQ(said(2, 3, {0, 2}, {0, 0}),
            "Csr: row[1] = 2 where there are 2: give numbers from 0 on");
  EXPECT_EQ(said(2, 3, {0, 1}, {0, -1}),
            "Csr: column[1] = -1 where there are 3: give numbers from 0 on");
  EXPECT_EQ(said(2, 3, {0, 1}, {0}), "Csr: 2 rows and 1 columns: give one of each for every entry");
  EXPECT_NE(said(-1, 3, {}, {}).find("-1 rows"), std::string::npos);
  EXPECT_NE(said(2, std::int64_t{1} << 31, {}, {}).find("2147483648 columns"), std::string::npos);
  const Tensor fractions = Tensor::zeros({2}, DType::f32);
  EXPECT_EQ(message_of([&] {
              Csr(2, 2, fractions, i64({0, 1}));
            }),
            "Csr: row is f32 [2]: give whole numbers, i32 or i64, [entries]");
}

TEST(Csr, APatternOfTheCallersOwnIsChecked) {
  const std::vector<std::int64_t> begin{0, 1, 3}, descending{0, 3, 1}, late{1, 1, 3};
  const std::vector<std::int32_t> column{0, 1, 1}, far{0, 5, 1};
  const std::vector<std::int64_t> entry{2, 0, 1}, twice{0, 0, 1};
  const CsrView good{.rows = 2, .columns = 2, .row_begin = begin, .column = column, .entry = entry};
  check_pattern(good, "op");
  const auto said = [&](auto&& change) {
    CsrView bad = good;
    change(bad);
    return message_of([&] { check_pattern(bad, "op"); });
  };
  EXPECT_EQ(said([&](CsrView& v) { v.row_begin = descending; }),
            "op: row_begin[2] = 1 after 3 where there are 3 entries; bounds ascend from 0 to that "
            "number");
  EXPECT_EQ(said([&](CsrView& v) { v.row_begin = late; }),
            "op: row_begin goes from 1 to 3; it goes from 0 to the 3 entries");
  EXPECT_EQ(said([&](CsrView& v) { v.column = far; }),
            "op: column[1] = 5 where there are 2 columns: give numbers from 0 on");
  EXPECT_EQ(said([&](CsrView& v) { v.entry = twice; }),
            "op: entry[1] = 0 is none of 3 entries, or stands twice: number each once, from 0 on");
  EXPECT_EQ(said([&](CsrView& v) { v.rows = 3; }),
            "op: 3 bounds of 3 rows; give one more than rows");
  EXPECT_EQ(said([&](CsrView& v) { v.entry = v.entry.first(2); }),
            "op: 2 numbers of 3 entries; give one for each, or none");
}

}   // namespace
}   // namespace pumice::test
