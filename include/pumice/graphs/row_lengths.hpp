// How long the rows of a pattern are: the histogram that plans of sparse products are predicted
// from.
#pragma once

#include <array>
#include <cstdint>

#include <pumice/graphs/csr.hpp>

namespace pumice {

struct RowLengths {
  /// Rows without entries, of one, of two, of 3 to 4, of 5 to 8, and so on by powers of 2.
  static constexpr std::size_t kBuckets = 64;
  std::array<std::int64_t, kBuckets> rows{};
  std::int64_t longest = 0;

  std::int64_t rows_with_entries() const;
  /// Slots that lines of `width` take, where longer rows have several lines.
  std::int64_t slots_of_lines(std::int64_t width) const { return width * lines(width); }
  /// Those lines, at most: of a bucket every row counts as its longest.
  std::int64_t lines(std::int64_t width) const;
  friend bool operator==(const RowLengths&, const RowLengths&) = default;
};

/// The bucket of a row of so many entries.
std::size_t length_bucket(std::int64_t entries);

/// Of a pattern on the CPU, UserError for another. O(rows).
RowLengths row_lengths(const CsrView& pattern);

}   // namespace pumice
