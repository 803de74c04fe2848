// Reading a list of row numbers, which may hold mistakes, and weights beside it.
#pragma once

#include <pumice/ops/row_arguments.h>
#include <pumice/platform.h>

namespace pumice {

inline constexpr int64_t kNoRow = -1;
inline constexpr int64_t kBadRow = -2;

PUMICE_DEVICE int64_t listed_row(const RowList& rows, int64_t i) {
  const int64_t row = rows.wide ? static_cast<const int64_t*>(rows.row)[i]
                                : int64_t{static_cast<const int32_t*>(rows.row)[i]};
  return row >= kNoRow && row < rows.limit ? row : kBadRow;
}

PUMICE_DEVICE double weight_at(const void* weights, bool wide, int64_t i) {
  if (weights == nullptr) return 1.0;
  return wide ? static_cast<const double*>(weights)[i]
              : static_cast<double>(static_cast<const float*>(weights)[i]);
}

}   // namespace pumice
