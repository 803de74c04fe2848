// Telling the host what went wrong.
#pragma once

#include <pumice/platform.h>
#include <pumice/shared/status.h>

namespace pumice {

/// Writes the record unless it holds an earlier trouble. `row` names one of the rows, -1 none.
PUMICE_DEVICE void report(StatusRecord* status, StatusCode code, int32_t site, int64_t needed,
                          int64_t capacity, int32_t row = -1) {
  if (atomic_compare_swap(&status->claim, 0, 1) != 0) return;
  volatile StatusRecord* const record = status;
  record->site = site;
  record->row = row;
  record->needed = needed;
  record->capacity = capacity;
  fence_to_host();
  record->code = code;
  fence_to_host();
}

}   // namespace pumice
