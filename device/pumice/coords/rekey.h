// The keys of one set or two in another layout, of larger cells where a factor says so; to be
// sorted next. For strides that no shift of keys gives, and for unions.
//
//   left   │ key … │  rows n ┐
//                            ├─▶ │ keys, n + m │      values say which row of which set
//   right  │ key … │  rows m ┘
#pragma once

#include <pumice/coords/rekey_arguments.h>
#include <pumice/shared/floor_division.h>

namespace pumice {

/// floor(cell / factor). Cells are int32, so that the division takes no call.
PUMICE_DEVICE int64_t coarse_cell(int64_t cell, int32_t factor) {
  return factor == 1 ? cell
                     : int64_t{static_cast<int32_t>(cell) / factor} -
                           (static_cast<int32_t>(cell) % factor < 0 ? 1 : 0);
}

PUMICE_DEVICE uint64_t new_key(const RekeyArguments& a, const KeyLayout& from, uint64_t key) {
  const int64_t batch = decode_batch(from, key);
  uint64_t result =
      a.layout.batch_bits == 0 ? 0 : static_cast<uint64_t>(batch) << a.layout.batch_shift;
  for (int axis = 0; axis < from.dimension; ++axis) {
    const int64_t cell = coarse_cell(decode_axis(from, key, axis), a.factor[axis]);
    result |= deposit_bits(static_cast<uint64_t>(cell + a.layout.bias[axis]), a.layout.mask[axis]);
  }
  return result;
}

PUMICE_KERNEL PUMICE_THREADS(kRekeyThreads) void rekey_sets(PUMICE_ARGUMENT(RekeyArguments) a) {
  wait_for_previous();
  const int number = a.sources > 1 && a.source[1].first_block <= block_index() ? 1 : 0;
  const RekeySource& source = a.source[number];
  int64_t before = 0;
  bool poisoned = false;
  int64_t total = 0;
  for (int i = 0; i < a.sources; ++i) {
    poisoned |= a.source[i].rows.poisoned();
    if (i < number) before += a.source[i].rows.rows();
    total += a.source[i].rows.rows();
  }
  if (global_thread_index() == 0) *a.total = poisoned ? kPoison : total;
  const int64_t rank = int64_t{block_index() - source.first_block} * kRekeyThreads + thread_index();
  if (poisoned || rank >= source.rows.rows()) return;
  const uint64_t key = new_key(a, source.layout, source.keys[rank]);
  const int64_t row = source.order == nullptr ? rank : source.order[rank];
  a.keys[before + rank] = key;
  a.values[before + rank] = source.first_value + static_cast<uint32_t>(row);
}

}   // namespace pumice
