// One pass over the bounds of rows.
#include <pumice/graphs/row_lengths.hpp>

#include <algorithm>
#include <bit>
#include <numeric>

#include <pumice/core/error.hpp>

namespace pumice {
namespace {

/// The most entries that a row of a bucket has.
std::int64_t most_of(std::size_t bucket) {
  return bucket == 0 ? 0 : std::int64_t{1} << (bucket - 1);
}

}   // namespace

std::size_t length_bucket(std::int64_t entries) {
  if (entries <= 0) return 0;
  return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(entries - 1))) + 1;
}

std::int64_t RowLengths::rows_with_entries() const {
  return std::accumulate(rows.begin() + 1, rows.end(), std::int64_t{0});
}

std::int64_t RowLengths::lines(std::int64_t width) const {
  std::int64_t lines = 0;
  for (std::size_t bucket = 1; bucket < kBuckets; ++bucket) {
    const std::int64_t most = std::min(most_of(bucket), longest);
    lines += rows[bucket] * ((most + width - 1) / width);
  }
  return lines;
}

RowLengths row_lengths(const CsrView& pattern) {
  PUMICE_EXPECTS(pattern.device.kind == DeviceKind::cpu, "row_lengths: the pattern is on ",
                 to_string(pattern.device), ": give one on the CPU");
  RowLengths lengths;
  for (std::int64_t row = 0; row < pattern.rows; ++row) {
    const std::int64_t entries = pattern.end_of(row) - pattern.begin_of(row);
    ++lengths.rows[length_bucket(entries)];
    lengths.longest = std::max(lengths.longest, entries);
  }
  return lengths;
}

}   // namespace pumice
