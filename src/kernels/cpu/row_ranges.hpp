// Rows of a pattern in ranges of about as many entries each, for threads to take.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include <pumice/core/parallel.hpp>
#include <pumice/graphs/csr.hpp>
#include <pumice/plan/sparse_plan.hpp>

namespace pumice::cpu {

/// Ranges of about `work` entries, of which a row counts as one more; a longer row is a range of
/// its own, and empty ones follow it. Of the pattern alone, so that results do not depend on
/// threads. Where a range begins is searched by the thread that takes it: a list of all of them
/// would be made before the first starts, 20 us for 23,000 rows.
class RowRanges {
 public:
  RowRanges(const CsrView& pattern, std::int64_t work)
      : row_begin_(pattern.row_begin), rows_(pattern.rows), work_(work) {}

  std::int64_t count() const { return (before(rows_) + work_ - 1) / work_; }
  /// Its first row; of the range behind the last one the number of rows.
  std::int64_t begin_of(std::int64_t range) const {
    std::int64_t low = 0, high = rows_;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (before(middle) < range * work_) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

 private:
  /// Entries and rows before `row`.
  std::int64_t before(std::int64_t row) const {
    return row_begin_[static_cast<std::size_t>(row)] + row;
  }

  std::span<const std::int64_t> row_begin_;
  std::int64_t rows_;
  std::int64_t work_;
};

/// Those for threads, where each entry moves so many channels. `work`: as in RangeSchedule.
inline RowRanges ranges_of_tasks(const CsrView& pattern, std::int64_t channels, std::int64_t work) {
  return {pattern, std::max<std::int64_t>(work / std::max<std::int64_t>(channels, 1), 1)};
}

/// Calls body(first, last) for ranges of rows, on all threads. `channels`: of what each entry
/// moves; `work`: channels of entries that a range has.
template <class Body>
void for_row_ranges(const CsrView& pattern, std::int64_t channels, Body&& body,
                    std::int64_t work = RangeSchedule{}.work) {
  const RowRanges ranges = ranges_of_tasks(pattern, channels, work);
  parallel_for(ranges.count(), 1, [&](std::int64_t first, std::int64_t last) {
    body(ranges.begin_of(first), ranges.begin_of(last));
  });
}

/// Calls body(row) for all rows, likewise.
template <class Body>
void for_rows(const CsrView& pattern, std::int64_t channels, Body&& body,
              std::int64_t work = RangeSchedule{}.work) {
  for_row_ranges(
      pattern, channels,
      [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first; row < last; ++row)
          body(row);
      },
      work);
}

}   // namespace pumice::cpu
