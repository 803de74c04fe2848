// Rows of a pattern on a device, shared out.
#pragma once

#include <cstdint>

#include <pumice/graphs/balance_arguments.h>
#include <pumice/graphs/csr.hpp>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// Rows of more entries than a part has that there can be among so many, and their parts.
constexpr std::int64_t most_long_rows(std::int64_t entries) {
  return entries / part_entries(entries);
}
constexpr std::int64_t most_row_parts(std::int64_t entries) {
  return 2 * most_long_rows(entries);
}

/// Whether the longest row of a pattern is known.
inline constexpr std::int64_t kUnknownLength = -1;

/// Adds units of work, and the list of rows that are cut, unless `longest` says that there are
/// none. Enqueued.
void add_balance(PatternLists& lists, std::int64_t rows, StreamView stream,
                 std::int64_t longest = kUnknownLength);

/// A pattern on a device as kernels take it.
PatternRef pattern_ref(const CsrView& pattern);

}   // namespace pumice::cuda
