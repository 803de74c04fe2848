// The entries of a row, brought together from the lines of its parts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <pumice/core/parallel.hpp>
#include <pumice/formats/decomposed.hpp>

#include "kernels/cpu/entry_rows.hpp"
#include "kernels/cpu/row_ranges.hpp"

namespace pumice::cpu {

/// For one thread: lists that are kept from row to row.
class PartRows {
 public:
  /// `in_order`: as in the pattern, for who asks which of equals is the first.
  PartRows(const Decomposed& parts, bool in_order) : parts_(parts), in_order_(in_order) {}

  /// Which columns, numbers and how many entries; what else a row has is left as it is. Valid until
  /// the next call. A row whose lines of single entries follow each other is looked at where it
  /// lies.
  void find(std::int64_t row, EntryRow& to);

 private:
  struct Found {
    std::int64_t place;
    std::int64_t number;
    std::int32_t column;
  };
  void append(const PartLine& line);
  void put_in_order();

  const Decomposed& parts_;
  bool in_order_;
  std::vector<std::int32_t> column_;
  std::vector<std::int64_t> number_;
  std::vector<Found> found_;
};

/// Calls body(row, rows) for all rows, on all threads, each with a PartRows of its own; `channels`:
/// of what each entry moves; `work`: channels of entries that a range of rows has.
template <class Body>
void for_part_rows(const Decomposed& parts, std::int64_t channels, std::int64_t work, bool in_order,
                   Body&& body) {
  const RowRanges ranges =
      ranges_of_tasks({.rows = parts.rows(), .row_begin = parts.row_begin()}, channels, work);
  constexpr std::int64_t kRangesOfTask = 8;   // share the lists of one PartRows
  parallel_for(ranges.count(), kRangesOfTask, [&](std::int64_t first, std::int64_t last) {
    PartRows rows(parts, in_order);
    const std::int64_t end = ranges.begin_of(last);
    for (std::int64_t row = ranges.begin_of(first); row < end; ++row)
      body(row, rows);
  });
}

}   // namespace pumice::cpu
