// Points to cells, and what the points of a voxel come to.
//
//   quantise_points   cell = floor((position − origin) / size) in float32, and its key
//   … sort, levels …  voxels in key order; a voxel's points stay in their order
//   reduce_points     a thread a voxel and channel: first, largest, sum or mean of its points,
//   summed
//                     in float64 and in point order, so that the CPU's bits come out
#pragma once

#include <pumice/coords/row_trouble.h>
#include <pumice/coords/voxelize_arguments.h>
#include <pumice/grid/digit_counts.h>

namespace pumice {

enum class PointFate : int { kept, left_out, without_cell };

/// What an axis of a point adds to its key.
PUMICE_DEVICE PointFate quantise_axis(const QuantiseArguments& a, int axis, float position,
                                      uint64_t& key) {
  if (a.has_range != 0 && !(position >= a.origin[axis] && position < a.high[axis]))
    return PointFate::left_out;
  const float cell = round_down((position - a.origin[axis]) / a.size[axis]);
  if (a.shape[axis] > 0 && !(cell >= 0.0f && cell < static_cast<float>(a.shape[axis])))
    return PointFate::left_out;
  if (!(cell >= -2147483648.0f && cell < 2147483648.0f)) return PointFate::without_cell;
  const auto whole = static_cast<int64_t>(cell);
  if (!in_layout(a.layout, axis, whole)) return PointFate::without_cell;
  key |= deposit_bits(static_cast<uint64_t>(whole + a.layout.bias[axis]), a.layout.mask[axis]);
  return PointFate::kept;
}

/// The cloud that a point belongs to where clouds come one after the other.
PUMICE_DEVICE int32_t cloud_of(const QuantiseArguments& a, int64_t point) {
  int32_t cloud = 0;
  int32_t end = a.clouds;
  while (end - cloud > 1) {
    const int32_t middle = (cloud + end) / 2;
    if (a.cloud_begin[middle] <= point) {
      cloud = middle;
    } else {
      end = middle;
    }
  }
  return cloud;
}

/// A point that is not finite has no cell; else, one that is left out on some axis is left out.
PUMICE_DEVICE PointFate quantise_point(const QuantiseArguments& a, int64_t point, uint64_t& key) {
  bool finite = true;
  bool left_out = false;
  bool without_cell = false;
  const int32_t cloud = a.batch != nullptr ? a.batch[point] : cloud_of(a, point);
  if (cloud < 0 || cloud >= a.clouds) return PointFate::without_cell;
  key = a.layout.batch_bits == 0 ? 0 : static_cast<uint64_t>(cloud) << a.layout.batch_shift;
  PUMICE_UNROLL
  for (int axis = 0; axis < kPointAxes; ++axis) {
    const float position = a.positions[point * a.stride + axis];
    const PointFate fate = quantise_axis(a, axis, position, key);
    finite = finite && position - position == 0.0f;
    left_out = left_out || fate == PointFate::left_out;
    without_cell = without_cell || fate == PointFate::without_cell;
  }
  if (!finite) return PointFate::without_cell;
  if (left_out) return PointFate::left_out;
  return without_cell ? PointFate::without_cell : PointFate::kept;
}

/// A block kQuantisePoints points, and how often each digit of their keys occurs.
PUMICE_KERNEL PUMICE_THREADS(kVoxelizeThreads) void quantise_points(
    PUMICE_ARGUMENT(QuantiseArguments) a) {
  wait_for_previous();
  PUMICE_BLOCK_SHARED(DigitCounts, counts);
  if (global_thread_index() == 0 && a.points.poisoned()) *a.kept = kPoison;
  const int64_t points = a.points.rows();
  const int64_t first = int64_t{block_index()} * kQuantisePoints;
  if (first >= points) return;
  const bool counting = a.totals.count != nullptr;
  if (counting) counts.clear<kVoxelizeThreads>(a.totals.digits);
  int kept = 0;   // by the threads of the warp
  PUMICE_UNROLL
  for (int item = 0; item < kQuantiseItems; ++item) {
    const int64_t point = first + item * kVoxelizeThreads + thread_index();
    PointFate fate = PointFate::left_out;
    if (point < points) {
      uint64_t key = 0;
      fate = quantise_point(a, point, key);
      if (fate == PointFate::without_cell) note_row(a.outside, static_cast<uint32_t>(point));
      if (fate == PointFate::left_out) key = uint64_t{1} << key_bits(a.layout);
      if (fate == PointFate::without_cell) key = 0;
      a.keys[point] = key;
      if (counting) counts.count(a.totals.digits, key);
    }
    kept += popcount(warp_ballot(fate != PointFate::left_out));
  }
  if (lane_index() == 0 && kept > 0) atomic_add(a.kept, static_cast<int64_t>(kept));
  if (counting) counts.add_to<kVoxelizeThreads>(a.totals);
}

/// A NaN wins, so that it is not lost.
PUMICE_DEVICE float larger(float best, float value) {
  return value > best || value != value ? value : best;
}

PUMICE_DEVICE float reduce_channel(const ReduceArguments& a, int64_t begin, int64_t end,
                                   int channel) {
  const float first = a.features[int64_t{a.members[begin]} * a.channels + channel];
  if (a.reduction == PointReduction::first || end - begin == 1) return first;
  float best = first;
  double sum = first;
  for (int64_t i = begin + 1; i < end; ++i) {
    const float value = a.features[int64_t{a.members[i]} * a.channels + channel];
    best = larger(best, value);
    sum += static_cast<double>(value);
  }
  if (a.reduction == PointReduction::max) return best;
  if (a.reduction == PointReduction::sum) return static_cast<float>(sum);
  return static_cast<float>(sum / static_cast<double>(end - begin));
}

/// Launched with an axis y of channels.
PUMICE_KERNEL PUMICE_THREADS(kVoxelizeThreads) void reduce_points(PUMICE_ARGUMENT(ReduceArguments)
                                                                      a) {
  wait_for_previous();
  const int64_t voxel = global_thread_index();
  const int channel = block_index_y();
  float* const to = a.reduced + voxel * a.channels + channel;
  if (a.voxels.poisoned()) {
    if (voxel < a.voxels.capacity) *to = quiet_nan();
  } else if (voxel < a.voxels.rows()) {
    *to = reduce_channel(a, a.begin[voxel], a.begin[voxel + 1], channel);
  }
}

}   // namespace pumice
