// The cells around points, and features between them.
#pragma once

#include <pumice/coords/block_table.h>
#include <pumice/ops/column_walk.h>
#include <pumice/ops/row_list.h>

namespace pumice {

PUMICE_DEVICE double round_down_wide(double value) {
  return floor(value);
}
PUMICE_DEVICE float round_down_wide(float value) {
  return round_down(value);
}

/// Whether this is a position in a batch item. The difference of an infinity from itself is NaN.
template <class P>
PUMICE_DEVICE bool good_point(const P* point, int dimension, int32_t batch_size) {
  bool good = point[0] >= 0 && point[0] < static_cast<P>(batch_size) &&
              point[0] == round_down_wide(point[0]);
  for (int axis = 1; axis <= dimension; ++axis)
    good = good && point[axis] - point[axis] == P{0};
  return good;
}

/// Row of a cell, or -1. Unrolled over all axes that there could be, so that cells stay in
/// registers.
PUMICE_DEVICE int32_t row_at(const CoordinateSetRef& set, int64_t batch,
                             const int64_t (&cell)[kMaxDimension]) {
  const KeyLayout& layout = set.layout;
  uint64_t key = layout.batch_bits == 0 ? 0 : static_cast<uint64_t>(batch) << layout.batch_shift;
  PUMICE_UNROLL
  for (int axis = 0; axis < kMaxDimension; ++axis) {
    if (axis >= layout.dimension) break;
    if (!in_layout(layout, axis, cell[axis])) return -1;
    key |= deposit_bits(static_cast<uint64_t>(cell[axis] + layout.bias[axis]), layout.mask[axis]);
  }
  return row_of_rank(set.order, find_rank(set.table, key));
}

template <class P> PUMICE_DEVICE void find_point(const CornerArguments& a, int64_t p) {
  const int dimension = a.set.layout.dimension;
  const bool linear = a.corners > 1;
  const P* const point = static_cast<const P*>(a.points) + p * (1 + dimension);
  int32_t* const rows = a.rows + p * a.corners;
  P* const weights = static_cast<P*>(a.weights) + p * a.corners;
  if (!good_point(point, dimension, a.batch_size)) {
    atomic_add(a.bad, int64_t{1});
    for (int corner = 0; corner < a.corners; ++corner) {
      rows[corner] = -1;
      weights[corner] = static_cast<P>(quiet_nan());
    }
    return;
  }
  int64_t base[kMaxDimension] = {};
  P part[kMaxDimension] = {};
  PUMICE_UNROLL
  for (int axis = 0; axis < kMaxDimension; ++axis) {
    if (axis >= dimension) break;
    const P position = point[axis + 1];
    const P cell = round_down_wide(linear ? position : position + P{0.5});
    // Beyond any layout, and far from where the number of a cell overflows.
    const P far = static_cast<P>(int64_t{1} << 40);
    base[axis] = static_cast<int64_t>(cell < -far ? -far : cell > far ? far : cell);
    part[axis] = linear ? position - round_down_wide(position) : P{0};
  }
  P present = 0;
  PUMICE_ROLLED
  for (int corner = 0; corner < a.corners; ++corner) {
    int64_t cell[kMaxDimension] = {};
    P weight = 1;
    PUMICE_UNROLL
    for (int axis = 0; axis < kMaxDimension; ++axis) {
      if (axis >= dimension) break;
      const bool upper = linear && (corner >> axis & 1) != 0;
      cell[axis] = base[axis] + (upper ? 1 : 0);
      weight *= upper ? part[axis] : P{1} - part[axis];
    }
    const int32_t row = weight == P{0} ? -1 : row_at(a.set, static_cast<int64_t>(point[0]), cell);
    rows[corner] = row;
    weights[corner] = row < 0 ? P{0} : weight;
    present += weights[corner];
  }
  if (!a.renormalize || present == P{0}) return;
  for (int corner = 0; corner < a.corners; ++corner)
    weights[corner] /= present;
}

PUMICE_KERNEL PUMICE_THREADS(kRowThreads) void find_corners(PUMICE_ARGUMENT(CornerArguments) a) {
  wait_for_previous();
  const int64_t p = global_thread_index();
  if (p >= a.size) return;
  if (a.wide) {
    find_point<double>(a, p);
  } else {
    find_point<float>(a, p);
  }
}

struct InterpolatePoint {
  template <class Access>
  PUMICE_DEVICE static void run(const InterpolateArguments& a, const int64_t& index) {
    constexpr int32_t kCount = Access::kCount;
    const int32_t chunks = a.channels / kCount;
    const int64_t point = index / chunks;
    if (point >= a.points) return;
    const int32_t channel = static_cast<int32_t>(index - point * chunks) * kCount;
    typename Access::Chunk sum, x;
    fill(sum, 0.0f);
    for (int64_t corner = point * a.corners; corner < (point + 1) * a.corners; ++corner) {
      const int64_t row = listed_row(a.rows, corner);
      const float weight = static_cast<float>(weight_at(a.weights, a.wide_weights, corner));
      // Times a weight of NaN, what a point that is no point has, 0 is NaN too.
      fill(x, row == kNotARow ? quiet_nan() : 0.0f);
      if (row >= 0) Access::load(a.in, row * a.channels + channel, x);
      PUMICE_UNROLL
      for (int32_t i = 0; i < kCount; ++i)
        sum[i] += x[i] * weight;
    }
    Access::store(a.out, point * a.channels + channel, sum);
  }
};

PUMICE_KERNEL PUMICE_THREADS(kRowThreads) void interpolate_points(
    PUMICE_ARGUMENT(InterpolateArguments) a) {
  wait_for_previous();
  const int64_t index = global_thread_index();
  with_access<InterpolatePoint>(a.type, a.channels, a, index);
}

}   // namespace pumice
