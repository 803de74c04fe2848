// Reading a list of row numbers, which may hold mistakes, and weights beside it.
#pragma once

#include <pumice/ops/row_arguments.h>
#include <pumice/platform.h>
#include <pumice/thread/report.h>

namespace pumice {

inline constexpr int64_t kNoRow = -1;
inline constexpr int64_t kNotARow = -2;

/// A row below the limit, kNoRow, or kNotARow for a mistake, which is reported.
PUMICE_DEVICE int64_t listed_row(const RowList& rows, int64_t i) {
  const int64_t row = rows.wide ? static_cast<const int64_t*>(rows.row)[i]
                                : int64_t{static_cast<const int32_t*>(rows.row)[i]};
  if (row >= kNoRow && row < rows.limit) return row;
  const bool fits = i <= int64_t{0x7fffffff};   // the record names elements in 31 bits
  if (rows.status != nullptr)
    report(rows.status, kBadRow, rows.site, row, rows.limit, fits ? static_cast<int32_t>(i) : -1);
  return kNotARow;
}

PUMICE_DEVICE double weight_at(const void* weights, bool wide, int64_t i) {
  if (weights == nullptr) return 1.0;
  return wide ? static_cast<const double*>(weights)[i]
              : static_cast<double>(static_cast<const float*>(weights)[i]);
}

}   // namespace pumice
