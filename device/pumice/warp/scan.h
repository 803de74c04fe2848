// Sums over the lanes of a warp.
#pragma once

#include <pumice/platform.h>

namespace pumice {

/// The sum over this lane and those before it.
template <class T> PUMICE_DEVICE T warp_inclusive_sum(T value) {
  PUMICE_UNROLL
  for (int distance = 1; distance < kWarpThreads; distance *= 2) {
    const T other = warp_shuffle_up(value, distance);
    if (lane_index() >= distance) value += other;
  }
  return value;
}

/// The sum over all lanes, in every lane.
template <class T> PUMICE_DEVICE T warp_sum(T value) {
  PUMICE_UNROLL
  for (int distance = kWarpThreads / 2; distance > 0; distance /= 2)
    value += warp_shuffle_xor(value, distance);
  return value;
}

/// The bits set in any lane, in every lane.
template <class T> PUMICE_DEVICE T warp_or(T value) {
  PUMICE_UNROLL
  for (int distance = kWarpThreads / 2; distance > 0; distance /= 2)
    value |= warp_shuffle_xor(value, distance);
  return value;
}

}   // namespace pumice
