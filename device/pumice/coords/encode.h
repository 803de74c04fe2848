// Coordinates to keys, one thread a row:
//
//   batch  x   y   z          key
//     0   -3   7   2   ──▶   0…101101     in the order of rows; sorted next
//     0  999   7   2   ──▶   0, and noted: outside what was declared
#pragma once

#include <pumice/coords/encode_arguments.h>
#include <pumice/coords/row_trouble.h>

namespace pumice {

PUMICE_KERNEL PUMICE_THREADS(kEncodeThreads) void encode_coordinates(
    PUMICE_ARGUMENT(EncodeArguments) a) {
  wait_for_previous();
  const int64_t row = global_thread_index();
  if (row >= a.rows.rows()) return;
  const int columns = 1 + a.layout.dimension;
  const int32_t* const cell = a.coordinates + row * columns;
  bool inside = true;
  for (int column = 0; column < columns; ++column)
    inside = inside && cell[column] >= a.low[column] && cell[column] <= a.high[column];
  if (!inside) note_row(a.outside, static_cast<uint32_t>(row));
  const uint64_t key = inside ? encode_key(a.layout, cell[0], cell + 1) : 0;
  a.keys[row] = key;
}

}   // namespace pumice
