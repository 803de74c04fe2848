// Ranges of rows cover all rows once, with about as much work each.
#include "kernels/cpu/row_ranges.hpp"

#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace pumice::test {
namespace {

/// Checks ranges of rows with so many entries each.
void check(const std::vector<std::int64_t>& entries, std::int64_t work) {
  std::vector<std::int64_t> begin(entries.size() + 1, 0);
  std::partial_sum(entries.begin(), entries.end(), begin.begin() + 1);
  const auto rows = static_cast<std::int64_t>(entries.size());
  const CsrView pattern{.rows = rows, .row_begin = begin};
  const cpu::RowRanges ranges(pattern, work);
  EXPECT_LE(ranges.count(), (begin.back() + rows) / work + 1);
  EXPECT_EQ(ranges.begin_of(0), 0);
  EXPECT_EQ(ranges.begin_of(ranges.count()), rows);
  for (std::int64_t range = 0; range < ranges.count(); ++range) {
    const std::int64_t first = ranges.begin_of(range), last = ranges.begin_of(range + 1);
    ASSERT_LE(first, last) << "range " << range;
    if (last - first <= 1) continue;
    // Without its last row a range is no more than its share.
    const auto end = static_cast<std::size_t>(last - 1), start = static_cast<std::size_t>(first);
    EXPECT_LE(begin[end] + last - 1 - begin[start] - first, work) << "range " << range;
  }
}

TEST(RowRanges, CoverAllRowsOnce) {
  for (const std::int64_t work : {1, 2, 31, 33, 1000}) {
    SCOPED_TRACE(work);
    check({}, work);
    check({0}, work);
    check({100}, work);
    check(std::vector<std::int64_t>(33, 0), work);
    check(std::vector<std::int64_t>(1000, 3), work);
    check({0, 0, 500, 0, 1, 2, 3, 0, 0, 40, 0}, work);
    check({500, 0, 0}, work);
    check({0, 0, 500}, work);
  }
}

}   // namespace
}   // namespace pumice::test
