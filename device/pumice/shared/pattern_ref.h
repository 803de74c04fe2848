// The pattern of a sparse matrix as kernels read it: rows one after the other, and parts of those
// that are too long for one team of threads.
#pragma once

#include <pumice/shared/types.h>

namespace pumice {

/// A row of more entries is cut into parts of so many. One of 154,828 entries, as in the graph AM,
/// would be all that a multiprocessor does for 2 ms.
inline constexpr int64_t kPartEntries = 256;

/// Entries [part · kPartEntries, (part + 1) · kPartEntries) of a row.
struct RowPart {
  int32_t row = 0;
  int32_t part = 0;
};

struct LongRow {
  int32_t row = 0;
  int32_t first = 0;   // its parts stand one after the other
  int32_t parts = 0;
};

/// Rows of more than kPartEntries entries, in any order.
struct LongRowsRef {
  const RowPart* part = nullptr;
  const LongRow* row = nullptr;
  const int32_t* counts = nullptr;   // [2] parts, rows; null: no row is long, or all stay whole
};

struct PatternRef {
  const int64_t* row_begin = nullptr;   // [rows + 1]
  const int32_t* column = nullptr;      // [entries]
  const int64_t* number = nullptr;      // [entries]; null: its place
  int64_t rows = 0;
  LongRowsRef long_rows{};
};

}   // namespace pumice
