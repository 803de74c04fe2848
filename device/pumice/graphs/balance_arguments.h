// What `balance_rows` (graphs/balance.h) is launched with.
#pragma once

#include <pumice/shared/pattern_ref.h>

namespace pumice {

inline constexpr int kBalanceThreads = 256;

struct BalanceArguments {
  const int64_t* row_begin = nullptr;   // [rows + 1]
  int64_t rows = 0;
  int32_t* unit_row = nullptr;   // [units + 1]
  int64_t units = 0;
  // Long rows; counts null: none are listed.
  int32_t part_entries = 0;
  RowPart* part = nullptr;      // [2 · entries / part_entries]
  LongRow* row = nullptr;       // [entries / part_entries]
  int32_t* counts = nullptr;    // [2] parts, rows
  uint64_t* states = nullptr;   // [tiles of kBalanceThreads rows] zeroed; grid/look_back.h
  uint32_t* ticket = nullptr;   // zeroed
};

}   // namespace pumice
