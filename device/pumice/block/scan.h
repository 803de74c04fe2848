// Sums over the threads of a block.
//
//     lanes    warp sums in shared memory        every thread adds up the warps before its own
//     ▁▂▃▄ ─▶ [ 7 | 3 | 9 | … ] ── barrier ──▶  before + inclusive - value
#pragma once

#include <pumice/warp/scan.h>

namespace pumice {

/// The sum over the threads before this one; `total` becomes the sum over all. Every thread of a
/// block of `kThreads` calls it.
template <int kThreads, class T> PUMICE_DEVICE T block_exclusive_sum(T value, T& total) {
  constexpr int kWarps = kThreads / kWarpThreads;
  using Sums = Array<T, kThreads / kWarpThreads>;
  PUMICE_BLOCK_SHARED(Sums, warp_sums);
  const T inclusive = warp_inclusive_sum(value);
  block_sync();   // whoever called before has read its sums
  if (lane_index() == kWarpThreads - 1) warp_sums[warp_index()] = inclusive;
  block_sync();
  T before = 0;
  total = 0;
  PUMICE_UNROLL
  for (int warp = 0; warp < kWarps; ++warp) {
    if (warp == warp_index()) before = total;
    total += warp_sums[warp];
  }
  return before + inclusive - value;
}

/// The sum over all threads, in every thread.
template <int kThreads, class T> PUMICE_DEVICE T block_sum(T value) {
  constexpr int kWarps = kThreads / kWarpThreads;
  using Sums = Array<T, kThreads / kWarpThreads>;
  PUMICE_BLOCK_SHARED(Sums, warp_sums);
  const T of_warp = warp_sum(value);
  block_sync();
  if (lane_index() == 0) warp_sums[warp_index()] = of_warp;
  block_sync();
  T total = 0;
  PUMICE_UNROLL
  for (int warp = 0; warp < kWarps; ++warp)
    total += warp_sums[warp];
  return total;
}

/// The largest value of all threads, in every thread.
template <int kThreads> PUMICE_DEVICE float block_max(float value) {
  constexpr int kWarps = kThreads / kWarpThreads;
  using Values = Array<float, kThreads / kWarpThreads>;
  PUMICE_BLOCK_SHARED(Values, warp_values);
  PUMICE_UNROLL
  for (int distance = kWarpThreads / 2; distance > 0; distance /= 2) {
    const float other = warp_shuffle_xor(value, distance);
    value = other > value ? other : value;
  }
  block_sync();   // whoever called before has read its values
  if (lane_index() == 0) warp_values[warp_index()] = value;
  block_sync();
  PUMICE_UNROLL
  for (int warp = 0; warp < kWarps; ++warp)
    value = warp_values[warp] > value ? warp_values[warp] : value;
  return value;
}

}   // namespace pumice
