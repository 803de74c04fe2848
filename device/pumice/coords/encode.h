// Coordinates to keys, and how often each digit of the keys occurs, which the sort starts from:
//
//   batch  x   y   z          key
//     0   -3   7   2   ──▶   0…101101     in the order of rows; sorted next
//     0  999   7   2   ──▶   0, and noted: outside what was declared
#pragma once

#include <pumice/coords/encode_arguments.h>
#include <pumice/coords/row_trouble.h>
#include <pumice/grid/digit_counts.h>

namespace pumice {

PUMICE_DEVICE uint64_t encode_row(const EncodeArguments& a, int64_t row) {
  const int columns = 1 + a.layout.dimension;
  const int32_t* const cell = a.coordinates + row * columns;
  bool inside = true;
  for (int column = 0; column < columns; ++column)
    inside = inside && cell[column] >= a.low[column] && cell[column] <= a.high[column];
  if (!inside) note_row(a.outside, static_cast<uint32_t>(row));
  return inside ? encode_key(a.layout, cell[0], cell + 1) : 0;
}

/// A block kEncodeRows rows.
PUMICE_KERNEL PUMICE_THREADS(kEncodeThreads) void encode_coordinates(
    PUMICE_ARGUMENT(EncodeArguments) a) {
  wait_for_previous();
  PUMICE_BLOCK_SHARED(DigitCounts, counts);
  const int64_t rows = a.rows.rows();
  const int64_t first = int64_t{block_index()} * kEncodeRows;
  if (first >= rows) return;
  const bool counting = a.totals.count != nullptr;
  if (counting) counts.clear<kEncodeThreads>(a.totals.digits);
  PUMICE_UNROLL
  for (int item = 0; item < kEncodeItems; ++item) {
    const int64_t row = first + item * kEncodeThreads + thread_index();
    if (row >= rows) continue;
    const uint64_t key = encode_row(a, row);
    a.keys[row] = key;
    if (counting) counts.count(a.totals.digits, key);
  }
  if (counting) counts.add_to<kEncodeThreads>(a.totals);
}

}   // namespace pumice
