// Mean and variance of columns in one pass over the features.
//
//    a thread: Welford over its rows       a block: Chan over its lanes       finish: over shares
//    n, mean, M2 in fp32             ──▶   the same, in shared memory   ──▶   in fp64
//
// Neither subtracts large sums from each other: the variance of values far from 0 keeps its digits.
#pragma once

#include <pumice/ops/column_walk.h>

namespace pumice {

/// Moments of what a thread, or a tree of lanes, has seen.
struct LaneMoments {
  float count[kColumnThreads];
  float mean[kColumnThreads * kColumnVector];
  float square[kColumnThreads * kColumnVector];   // Σ (x − mean)²
};

/// Adds the moments of thread `from` to those of thread `to` (Chan et al.).
template <int32_t kCount>
PUMICE_DEVICE void add_moments(LaneMoments& of, int32_t to, int32_t from) {
  const float count = of.count[to] + of.count[from];
  if (of.count[from] == 0.0f) return;
  const float share = of.count[from] / count;
  const float weight = of.count[to] * share;
  PUMICE_UNROLL
  for (int32_t i = 0; i < kCount; ++i) {
    const int32_t a = to * kCount + i, b = from * kCount + i;
    const float delta = of.mean[b] - of.mean[a];
    of.mean[a] += delta * share;
    of.square[a] += of.square[b] + delta * delta * weight;
  }
  of.count[to] = count;
}

struct ColumnMoments {
  template <class Access>
  PUMICE_DEVICE static void run(const MomentArguments& a, LaneMoments& lanes) {
    constexpr int32_t kCount = Access::kCount;
    const ColumnWalk<kCount> walk(a.shape);
    float count = 0.0f;
    typename Access::Chunk mean, square;
    fill(mean, 0.0f);
    fill(square, 0.0f);
    walk.for_rows([&](int64_t row) {
      typename Access::Chunk x;
      Access::load(a.in, row * a.shape.channels + walk.channel(), x);
      count += 1.0f;
      const float share = 1.0f / count;
      PUMICE_UNROLL
      for (int32_t i = 0; i < kCount; ++i) {
        const float delta = x[i] - mean[i];
        mean[i] += delta * share;
        square[i] += delta * (x[i] - mean[i]);
      }
    });
    const int32_t mine = thread_index();
    lanes.count[mine] = count;
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i) {
      lanes.mean[mine * kCount + i] = mean[i];
      lanes.square[mine * kCount + i] = square[i];
    }
    walk.combine_lanes([&](int32_t to, int32_t from) { add_moments<kCount>(lanes, to, from); });
    if (walk.lane() != 0) return;
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i) {
      a.partial[walk.partial(0) + i] = lanes.mean[mine * kCount + i];
      a.partial[walk.partial(1) + i] = lanes.square[mine * kCount + i];
    }
  }
};

PUMICE_KERNEL PUMICE_THREADS(kColumnThreads) void column_moments(PUMICE_ARGUMENT(MomentArguments)
                                                                     a) {
  PUMICE_BLOCK_SHARED(LaneMoments, lanes);
  with_access<ColumnMoments>(a.shape.type, a.shape.channels, a, lanes);
}

/// Sums of the threads that have one channel of a finishing block, in every thread of them.
class FinishSums {
 public:
  using Values = double[kFinishThreads];
  static constexpr int32_t kLanes = kFinishThreads / kFinishChannels;

  PUMICE_DEVICE explicit FinishSums(Values& values) : values_(values) {}
  PUMICE_DEVICE static int32_t lane() { return thread_index() / kFinishChannels; }
  PUMICE_DEVICE static int32_t channel() {
    return block_index() * kFinishChannels + thread_index() % kFinishChannels;
  }
  PUMICE_DEVICE double add(double value) const {
    values_[thread_index()] = value;
    block_sync();
    for (int32_t step = kLanes / 2; step > 0; step /= 2) {
      if (lane() < step)
        values_[thread_index()] += values_[thread_index() + step * kFinishChannels];
      block_sync();
    }
    const double sum = values_[thread_index() % kFinishChannels];
    block_sync();
    return sum;
  }

 private:
  Values& values_;
};

/// Calls body(share, rows of it) for those shares of an item that this lane adds up, in order.
template <class Body>
PUMICE_DEVICE void for_shares(const ColumnShape& shape, int32_t item, const Body& body) {
  const int64_t size = item_size(shape.rows, item);
  const int64_t step = share_size(size, shape.shares);
  for (int32_t share = FinishSums::lane(); share < shape.shares; share += FinishSums::kLanes) {
    const int64_t left = size - share * step;
    if (left > 0) body(share, left < step ? left : step);
  }
}

PUMICE_DEVICE void move_towards(float* running, int32_t channel, double momentum, double value) {
  if (running == nullptr) return;
  running[channel] = static_cast<float>((1.0 - momentum) * static_cast<double>(running[channel]) +
                                        momentum * value);
}

/// A block for every kFinishChannels channels goes through the items.
PUMICE_KERNEL PUMICE_THREADS(kFinishThreads) void finish_moments(PUMICE_ARGUMENT(StatisticArguments)
                                                                     a) {
  PUMICE_BLOCK_SHARED(FinishSums::Values, values);
  const FinishSums sums(values);
  const int32_t channel = FinishSums::channel();
  const bool mine = channel < a.shape.channels;
  const bool poisoned = a.shape.rows.rows.poisoned();
  for (int32_t item = 0; item < a.shape.rows.items; ++item) {
    const int64_t size = item_size(a.shape.rows, item);
    const double share_of_one = size > 0 ? 1.0 / static_cast<double>(size) : 0.0;
    double sum = 0.0;
    for_shares(a.shape, item, [&](int32_t share, int64_t rows) {
      if (!mine) return;
      sum += static_cast<double>(rows) *
             static_cast<double>(a.partial[partial_row(a.shape, item, share, 0) + channel]);
    });
    const double mean = sums.add(sum) * share_of_one;
    sum = 0.0;
    for_shares(a.shape, item, [&](int32_t share, int64_t rows) {
      if (!mine) return;
      const int64_t at = partial_row(a.shape, item, share, 0) + channel;
      const double delta = static_cast<double>(a.partial[at]) - mean;
      sum += static_cast<double>(a.partial[at + a.shape.channels]) +
             static_cast<double>(rows) * delta * delta;
    });
    const double variance = sums.add(sum) * share_of_one;
    if (!mine || FinishSums::lane() != 0) continue;
    const int64_t at = int64_t{item} * a.shape.channels + channel;
    const bool zero = size == 0 && a.empty == EmptyItem::zero;
    a.mean[at] = poisoned ? quiet_nan() : static_cast<float>(mean);
    a.inverse_deviation[at] = poisoned ? quiet_nan()
                              : zero   ? 0.0f
                                       : static_cast<float>(1.0 / sqrt(variance + a.epsilon));
    if (size == 0) continue;
    const double others = size > 1 ? static_cast<double>(size - 1) : 1.0;
    move_towards(a.running_mean, channel, a.momentum, mean);
    move_towards(a.running_variance, channel, a.momentum,
                 variance * static_cast<double>(size) / others);
  }
}

PUMICE_KERNEL PUMICE_THREADS(kColumnThreads) void invert_deviations(
    PUMICE_ARGUMENT(DeviationArguments) a) {
  const int64_t c = global_thread_index();
  if (c >= a.channels) return;
  a.out[c] = static_cast<float>(1.0 / sqrt(static_cast<double>(a.variance[c]) + a.epsilon));
}

}   // namespace pumice
