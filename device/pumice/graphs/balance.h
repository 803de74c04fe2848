// Shares the rows of a pattern out, so that threads have about as much to do: long rows are cut
// into parts, and rows stand together in units of kUnitWork rows and entries.
#pragma once

#include <pumice/graphs/balance_arguments.h>
#include <pumice/platform.h>
#include <pumice/thread/search.h>

namespace pumice {

/// Lists a row if it is long. Which stands first differs from run to run; the parts of a row stand
/// together and in order, so that what is summed over them does not.
PUMICE_DEVICE void list_long_row(const BalanceArguments& a, int64_t row) {
  const int64_t entries = a.row_begin[row + 1] - a.row_begin[row];
  if (entries <= a.part_entries) return;
  const auto parts = static_cast<int32_t>((entries + a.part_entries - 1) / a.part_entries);
  const int32_t first = atomic_add(&a.counts[0], parts);
  a.row[atomic_add(&a.counts[1], 1)] = {static_cast<int32_t>(row), first, parts};
  PUMICE_ROLLED
  for (int32_t part = 0; part < parts; ++part)
    a.part[first + part] = {static_cast<int32_t>(row), part};
}

PUMICE_KERNEL PUMICE_THREADS(kBalanceThreads) void balance_rows(PUMICE_ARGUMENT(BalanceArguments)
                                                                    a) {
  const int64_t at = global_thread_index();
  if (at <= a.units) {
    const auto work_before = [&](int64_t row) { return a.row_begin[row] + row; };
    a.unit_row[at] = static_cast<int32_t>(first_not_below(work_before, a.rows, at * kUnitWork));
  }
  if (a.counts != nullptr && at < a.rows) list_long_row(a, at);
}

}   // namespace pumice
