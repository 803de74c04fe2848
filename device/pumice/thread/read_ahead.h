// Kernels that begin before the kernel before them has ended, and read what that one does not
// write: maps, counts and packed weights (docs/decisions/0017-dependent-launches.md). The host says
// so where the kernel before writes only features (jit::may_read_ahead).
//
//   wait_unless(reads_ahead)     first of all; returns at once where the kernel reads ahead
//   load_ahead, copies of packed weights
//   wait_for_previous()          every thread, before it reads features, writes, lets
//                                the next grid in or returns
#pragma once

#include <pumice/platform.h>
#include <pumice/shared/row_count.h>

namespace pumice {

/// Waits for the kernel before this one, unless that writes nothing that is read first.
PUMICE_DEVICE void wait_unless(bool reads_ahead) {
  if (!reads_ahead) wait_for_previous();
}

/// The word of a count that may be exact.
PUMICE_DEVICE int64_t count_of(const RowCountRef& rows) {
  return rows.count == nullptr ? rows.capacity : load_ahead(rows.count);
}

PUMICE_DEVICE bool exceeds(int64_t count, const RowCountRef& rows) {
  return static_cast<uint64_t>(count) > static_cast<uint64_t>(rows.capacity);
}

}   // namespace pumice
