// Looking at an order of rows before rows are put into it.
#pragma once

#include <pumice/coords/reorder_arguments.h>
#include <pumice/platform.h>
#include <pumice/thread/report.h>

namespace pumice {

PUMICE_KERNEL PUMICE_THREADS(kReorderThreads) void check_order(PUMICE_ARGUMENT(ReorderArguments)
                                                                   a) {
  wait_for_previous();
  const int64_t rows = a.rows.rows();
  const int64_t i = global_thread_index();
  if (i >= rows) return;
  const int32_t row = a.row[i];
  const bool is_row = row >= 0 && row < rows;
  if (!is_row) report(a.status, kBadRow, a.site, row, rows, static_cast<int32_t>(i));
  a.checked[i] = is_row ? static_cast<uint32_t>(row) : static_cast<uint32_t>(i);
}

}   // namespace pumice
