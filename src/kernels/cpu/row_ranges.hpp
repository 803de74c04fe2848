// Rows of a pattern in ranges of about as many entries each, for threads to take.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <pumice/core/parallel.hpp>
#include <pumice/graphs/csr.hpp>

namespace pumice::cpu {

/// Where ranges of at least `work` entries (a row counts as one more) begin, and the end: of the
/// pattern alone, so that results do not depend on threads.
inline std::vector<std::int64_t> row_ranges(const CsrView& pattern, std::int64_t work) {
  std::vector<std::int64_t> begins{0};
  std::int64_t before = 0;
  for (std::int64_t row = 0; row < pattern.rows; ++row) {
    const std::int64_t done = pattern.end_of(row) + row + 1;
    if (done - before < work) continue;
    begins.push_back(row + 1);
    before = done;
  }
  if (begins.back() != pattern.rows) begins.push_back(pattern.rows);
  return begins;
}

/// Calls body(first, last) for ranges of rows, on all threads. `channels`: of what each entry
/// moves.
template <class Body>
void for_row_ranges(const CsrView& pattern, std::int64_t channels, Body&& body) {
  constexpr std::int64_t kWork = std::int64_t{1} << 16;   // channels of entries: some 10 us
  const auto ranges =
      row_ranges(pattern, std::max<std::int64_t>(kWork / std::max<std::int64_t>(channels, 1), 1));
  parallel_for(
      static_cast<std::int64_t>(ranges.size()) - 1, 1, [&](std::int64_t first, std::int64_t last) {
        body(ranges[static_cast<std::size_t>(first)], ranges[static_cast<std::size_t>(last)]);
      });
}

/// Calls body(row) for all rows, likewise.
template <class Body> void for_rows(const CsrView& pattern, std::int64_t channels, Body&& body) {
  for_row_ranges(pattern, channels, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row)
      body(row);
  });
}

}   // namespace pumice::cpu
