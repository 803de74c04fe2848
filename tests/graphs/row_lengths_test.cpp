// Histograms of rows beside counting them one by one.
// Covers row_lengths, kept_cuts.
#include <pumice/graphs/row_lengths.hpp>

#include <gtest/gtest.h>

#include "graphs/random_pattern.hpp"

namespace pumice::test {
namespace {

TEST(RowLengths, buckets_go_by_powers_of_two) {
  const std::pair<std::int64_t, std::size_t> cases[] = {{0, 0}, {1, 1}, {2, 2}, {3, 3},  {4, 3},
                                                        {5, 4}, {8, 4}, {9, 5}, {16, 5}, {17, 6}};
  for (const auto& [entries, bucket] : cases)
    EXPECT_EQ(length_bucket(entries), bucket) << entries;
}

TEST(RowLengths, count_every_row_once) {
  for (const PatternCase& one : pattern_cases()) {
    SCOPED_TRACE(one.name);
    std::vector<std::int64_t> length(static_cast<std::size_t>(one.rows));
    for (const std::int64_t row : one.row)
      ++length[static_cast<std::size_t>(row)];
    RowLengths expected;
    for (const std::int64_t entries : length) {
      ++expected.rows[length_bucket(entries)];
      expected.longest = std::max(expected.longest, entries);
    }
    const Csr csr = one.csr();
    EXPECT_EQ(row_lengths(csr.view()), expected);
    // Lines of any width hold all entries.
    for (const std::int64_t width : {1, 2, 7, 32})
      EXPECT_GE(expected.slots_of_lines(width), one.entries()) << width;
  }
}

TEST(RowLengths, lines_of_equal_rows_are_exact) {
  PatternCase one{"", 10, 8, {}, {}};
  for (std::int64_t row = 0; row < 10; ++row) {
    for (std::int64_t e = 0; e < 4; ++e) {
      one.row.push_back(row);
      one.column.push_back(e);
    }
  }
  const RowLengths lengths = [&] {
    const Csr csr = one.csr();
    return row_lengths(csr.view());
  }();
  EXPECT_EQ(lengths.longest, 4);
  EXPECT_EQ(lengths.rows_with_entries(), 10);
  EXPECT_EQ(lengths.lines(4), 10);
  EXPECT_EQ(lengths.lines(3), 20);
  EXPECT_EQ(lengths.slots_of_lines(3), 60);
}

TEST(KeptCuts, are_made_once) {
  const Csr csr = random_pattern(5, 5, 9, 1).csr();
  int made = 0;
  const auto make = [&] { return ++made; };
  EXPECT_FALSE(csr.view().kept->has("number"));
  const auto first = csr.view().kept->get<int>("number", make);
  EXPECT_TRUE(csr.view().kept->has("number"));
  EXPECT_EQ(csr.view().kept->get<int>("number", make), first);
  EXPECT_EQ(*first, 1);
  EXPECT_NE(csr.view().kept->get<int>("another", make), first);
}

}   // namespace
}   // namespace pumice::test
