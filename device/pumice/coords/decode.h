// Keys back to coordinates, row by row, and where each batch item's rows begin.
#pragma once

#include <pumice/coords/decode_arguments.h>
#include <pumice/platform.h>

namespace pumice {

/// One thread a rank.
PUMICE_KERNEL PUMICE_THREADS(kDecodeThreads) void decode_coordinates(
    PUMICE_ARGUMENT(DecodeArguments) a) {
  wait_for_previous();
  const int64_t rank = global_thread_index();
  if (rank >= a.rows.rows()) return;
  const uint64_t key = a.keys[rank];
  const int64_t row = a.order == nullptr ? rank : a.order[rank];
  int32_t* const cell = a.coordinates + row * (1 + a.layout.dimension);
  cell[0] = static_cast<int32_t>(decode_batch(a.layout, key));
  for (int axis = 0; axis < a.layout.dimension; ++axis)
    cell[1 + axis] = static_cast<int32_t>(decode_axis(a.layout, key, axis));
}

/// One thread a batch item, and one more: the ranks before its first, by bisection.
PUMICE_KERNEL PUMICE_THREADS(kDecodeThreads) void begin_batches(PUMICE_ARGUMENT(BatchArguments) a) {
  wait_for_previous();
  const int64_t batch = global_thread_index();
  if (batch > a.batch_size) return;
  int64_t low = 0;
  int64_t high = a.rows.rows();
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (decode_batch(a.layout, a.keys[middle]) < batch) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  a.begin[batch] = low;
}

}   // namespace pumice
