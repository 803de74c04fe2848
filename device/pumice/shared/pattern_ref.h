// The pattern of a sparse matrix as kernels read it: rows one after the other, and parts of those
// that are too long for one team of threads.
#pragma once

#include <pumice/shared/types.h>

namespace pumice {

/// A row of more entries is cut into parts of so many. One of 154,828 entries, as in the graph AM,
/// would be all that a multiprocessor does for 2 ms; where all of a product takes 20 µs, one of 256
/// is waited for.
PUMICE_SHARED constexpr int32_t part_entries(int64_t entries) {
  return entries < (int64_t{1} << 20) ? 64 : 256;
}

/// Entries of a row that is summed as a whole, at most: their places in it are counted in 32 bits.
inline constexpr int64_t kMostWholeRow = int64_t{1} << 30;

/// Rows and entries of a unit of work.
inline constexpr int64_t kUnitWork = 8;

PUMICE_SHARED constexpr int64_t work_units(int64_t rows, int64_t entries) {
  return (rows + entries + kUnitWork - 1) / kUnitWork;
}

/// Entries [part · part_entries, (part + 1) · part_entries) of a row.
struct RowPart {
  int32_t row = 0;
  int32_t part = 0;
};

/// Sets of counters that a pattern has: products on so many streams and recordings, the first ones,
/// add up the parts of long rows in the launch that sums them, up to kArrivalTiles tiles of
/// channels; others in a second launch, with the same bits.
inline constexpr int32_t kArrivalSets = 4;
inline constexpr int32_t kArrivalTiles = 4;

struct LongRow {
  int32_t row = 0;
  int32_t first = 0;   // its parts stand one after the other
  int32_t parts = 0;
};

/// Rows of more than part_entries entries, in their order.
struct LongRowsRef {
  const RowPart* part = nullptr;
  const LongRow* row = nullptr;
  const int32_t* counts = nullptr;   // [2] parts, rows; null: no row is long, or all stay whole
  int32_t part_entries = 0;
  /// [kArrivalSets, kArrivalTiles, most parts] how many parts of a row are summed, at its first
  /// part; 0 but while a product runs that has the set to itself. Null: nobody counts.
  uint32_t* arrived = nullptr;
};

struct PatternRef {
  const int64_t* row_begin = nullptr;   // [rows + 1]
  const int32_t* column = nullptr;      // [entries]
  const int64_t* number = nullptr;      // [entries]; null: its place
  int64_t rows = 0;
  int64_t entries = 0;
  LongRowsRef long_rows{};
  /// [units + 1] the first row of each unit of work: those with row_begin[row] + row from
  /// kUnitWork · unit on; null: rows are taken one by one.
  const int32_t* unit_row = nullptr;
  int64_t units = 0;
};

}   // namespace pumice
