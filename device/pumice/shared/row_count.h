// How many rows are in use, beside how many there is room for: the view of it that kernels receive.
#pragma once

#include <pumice/shared/types.h>

namespace pumice {

/// What whoever depends on a poisoned count writes into its own.
inline constexpr int64_t kPoison = 0x7fffffffffffffff;

/// Trivially copyable, passed by value. Work is launched over `capacity` and asks for `rows` where
/// it runs.
struct RowCountRef {
  const int64_t* count = nullptr;   // null: exactly `capacity` rows
  int64_t capacity = 0;

  /// Rows in use. A count above the capacity (or negative) is poison: more rows were needed than
  /// there was room for, the word still says how many, and nobody reads or writes a row.
  PUMICE_SHARED int64_t rows() const {
    return count == nullptr ? capacity : poisoned() ? 0 : *count;
  }
  PUMICE_SHARED bool poisoned() const {
    return count != nullptr && static_cast<uint64_t>(*count) > static_cast<uint64_t>(capacity);
  }
};

}   // namespace pumice
