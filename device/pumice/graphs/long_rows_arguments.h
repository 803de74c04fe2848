// What `list_long_rows` (graphs/long_rows.h) is launched with.
#pragma once

#include <pumice/shared/pattern_ref.h>

namespace pumice {

inline constexpr int kLongRowsThreads = 256;

struct LongRowsArguments {
  const int64_t* row_begin = nullptr;   // [rows + 1]
  int64_t rows = 0;
  RowPart* part = nullptr;     // [2 · entries / kPartEntries]
  LongRow* row = nullptr;      // [entries / kPartEntries]
  int32_t* counts = nullptr;   // [2] zeroed: parts, rows
};

}   // namespace pumice
