// Rows of a pattern on a device that are cut into parts.
#pragma once

#include <cstdint>

#include <pumice/graphs/long_rows_arguments.h>
#include <pumice/graphs/csr.hpp>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// Rows of more than kPartEntries entries that there can be among so many, and their parts.
constexpr std::int64_t most_long_rows(std::int64_t entries) {
  return entries / kPartEntries;
}
constexpr std::int64_t most_row_parts(std::int64_t entries) {
  return 2 * most_long_rows(entries);
}

/// Enqueues listing them; the counts are zeroed first.
void list_long_rows(jit::KernelRunner& runner, const LongRowsArguments& arguments);

/// A pattern on a device as kernels take it.
PatternRef pattern_ref(const CsrView& pattern);

}   // namespace pumice::cuda
