// Rows to the cells of a dense array and back, as bits.
#pragma once

#include <pumice/ops/row_arguments.h>
#include <pumice/platform.h>
#include <pumice/thread/report.h>

namespace pumice {

/// The element of a site and channel 0, or -1 outside the grid.
PUMICE_DEVICE int64_t dense_element(const DensePlacement& to, const int32_t* site) {
  int64_t element = site[0] * to.batch_stride;
  for (int axis = 0; axis < to.dimension; ++axis) {
    const int64_t cell = int64_t{site[axis + 1]} - to.low[axis];
    if (cell < 0 || cell >= to.shape[axis]) return -1;
    element += cell * to.stride[axis];
  }
  return element;
}

template <class Bits>
PUMICE_DEVICE void move_dense(const DenseArguments& a, int64_t row, int32_t channel,
                              int64_t element) {
  const int64_t feature = row * a.channels + channel;
  const int64_t cell = element + channel * a.placement.channel_stride;
  const Bits* const from = static_cast<const Bits*>(a.from);
  Bits* const to = static_cast<Bits*>(a.to);
  if (a.to_features) {
    to[feature] = element < 0 ? Bits{0} : from[cell];
  } else if (element >= 0) {
    to[cell] = from[feature];
  }
}

PUMICE_KERNEL PUMICE_THREADS(kRowThreads) void move_dense_rows(PUMICE_ARGUMENT(DenseArguments) a) {
  wait_for_previous();
  const int64_t index = global_thread_index();
  const int64_t row = index / a.channels;
  if (row >= a.rows.rows()) return;
  const int32_t channel = static_cast<int32_t>(index - row * a.channels);
  const int64_t element =
      dense_element(a.placement, a.coordinates + row * (1 + a.placement.dimension));
  if (element < 0 && channel == 0 && a.outside != nullptr) atomic_add(a.outside, int64_t{1});
  switch (a.element_bytes) {
    case 8: return move_dense<uint64_t>(a, row, channel, element);
    case 4: return move_dense<uint32_t>(a, row, channel, element);
    default: return move_dense<uint16_t>(a, row, channel, element);
  }
}

PUMICE_KERNEL PUMICE_THREADS(32) void report_outside(PUMICE_ARGUMENT(OutsideArguments) a) {
  wait_for_previous();
  if (global_thread_index() == 0 && *a.outside > 0)
    report(a.status, kOutsideLayout, a.site, *a.outside, a.rows);
}

}   // namespace pumice
