// Lists the rows that are cut, and their parts. Which stands first differs from run to run; the
// parts of a row stand together and in order, so that what is summed over them does not.
#pragma once

#include <pumice/graphs/long_rows_arguments.h>
#include <pumice/platform.h>

namespace pumice {

PUMICE_KERNEL PUMICE_THREADS(kLongRowsThreads) void list_long_rows(
    PUMICE_ARGUMENT(LongRowsArguments) a) {
  const int64_t row = global_thread_index();
  if (row >= a.rows) return;
  const int64_t entries = a.row_begin[row + 1] - a.row_begin[row];
  if (entries <= kPartEntries) return;
  const auto parts = static_cast<int32_t>((entries + kPartEntries - 1) / kPartEntries);
  const int32_t first = atomic_add(&a.counts[0], parts);
  a.row[atomic_add(&a.counts[1], 1)] = {static_cast<int32_t>(row), first, parts};
  PUMICE_ROLLED
  for (int32_t part = 0; part < parts; ++part)
    a.part[first + part] = {static_cast<int32_t>(row), part};
}

}   // namespace pumice
