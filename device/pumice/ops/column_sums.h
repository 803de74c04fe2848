// Sums over rows: gradients of biases and of norms, global pooling. Threads add in fp32, the lanes
// of a block in a tree, shares in fp64: no sum has more than a few hundred terms of fp32.
#pragma once

#include <pumice/ops/column_walk.h>

namespace pumice {

/// Two sums of every thread.
struct LaneSums {
  float first[kColumnThreads * kColumnVector];
  float second[kColumnThreads * kColumnVector];
};

/// The terms of a few rows, which are read before the first of them is added.
template <class Access> class SumTerms {
  static constexpr int32_t kCount = Access::kCount;
  static constexpr int32_t kRows = Access::kRowsOfSeveral;

 public:
  PUMICE_DEVICE SumTerms(const ColumnSumArguments& a, const ColumnWalk<kCount>& walk)
      : a_(a), channel_(walk.channel()) {
    if (a.term == SumTerm::centered) Access::load_or(a.mean, walk.statistic(), 0.0f, mean_);
  }

  PUMICE_DEVICE void load(int32_t at, int64_t row) {
    const int64_t element = row * a_.shape.channels + channel_;
    Access::load(a_.grad, element, grad_[at]);
    Access::load(a_.relu != nullptr ? a_.relu : a_.grad, element, relu_[at]);
    Access::load(a_.term != SumTerm::none ? a_.in : a_.grad, element, in_[at]);
    if (a_.term == SumTerm::normalized) {
      center_[at] = a_.mean[row];
      scale_[at] = a_.inverse_deviation[row];
    }
  }

  PUMICE_DEVICE void add(int32_t rows, typename Access::Chunk& first,
                         typename Access::Chunk& second) const {
    PUMICE_UNROLL
    for (int32_t at = 0; at < kRows; ++at) {
      if (at < rows) add_row(at, first, second);
    }
  }

 private:
  PUMICE_DEVICE void add_row(int32_t at, typename Access::Chunk& first,
                             typename Access::Chunk& second) const {
    const bool by_row = a_.term == SumTerm::normalized;
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i) {
      const bool passes = a_.relu == nullptr || relu_[at][i] > 0.0f;
      const float g = passes ? grad_[at][i] : 0.0f;
      first[i] += g;
      if (a_.term == SumTerm::none) continue;
      const float from = by_row ? center_[at] : mean_[i];
      second[i] += g * ((in_[at][i] - from) * (by_row ? scale_[at] : 1.0f));
    }
  }

  const ColumnSumArguments& a_;
  int32_t channel_;
  typename Access::Chunk mean_ = {};
  typename Access::Chunk grad_[static_cast<unsigned>(kRows)];
  typename Access::Chunk relu_[static_cast<unsigned>(kRows)];
  typename Access::Chunk in_[static_cast<unsigned>(kRows)];
  float center_[static_cast<unsigned>(kRows)];
  float scale_[static_cast<unsigned>(kRows)];
};

struct ColumnSums {
  template <class Access>
  PUMICE_DEVICE static void run(const ColumnSumArguments& a, const BlockShare& of,
                                LaneSums& lanes) {
    constexpr int32_t kCount = Access::kCount;
    const ColumnWalk<kCount> walk(a.shape, of);
    SumTerms<Access> terms(a, walk);
    typename Access::Chunk first, second;
    fill(first, 0.0f);
    fill(second, 0.0f);
    walk.template for_row_batches<Access::kRowsOfSeveral>(
        [&](int32_t at, int64_t row) { terms.load(at, row); },
        [&](const int64_t*, int32_t rows) { terms.add(rows, first, second); });
    const int32_t mine = thread_index();
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i) {
      lanes.first[mine * kCount + i] = first[i];
      lanes.second[mine * kCount + i] = second[i];
    }
    walk.combine_lanes([&](int32_t to, int32_t from) {
      PUMICE_UNROLL
      for (int32_t i = 0; i < kCount; ++i) {
        lanes.first[to * kCount + i] += lanes.first[from * kCount + i];
        lanes.second[to * kCount + i] += lanes.second[from * kCount + i];
      }
    });
    if (walk.lane() != 0) return;
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i) {
      a.partial[walk.partial(0) + i] = lanes.first[mine * kCount + i];
      a.partial[walk.partial(1) + i] = lanes.second[mine * kCount + i];
    }
  }
};

PUMICE_KERNEL PUMICE_THREADS(kColumnThreads) void column_sums(PUMICE_ARGUMENT(ColumnSumArguments)
                                                                  a) {
  wait_for_previous();
  PUMICE_BLOCK_SHARED(LaneSums, lanes);
  const BlockShare of = share_of_block(a.shape);
  if (!of.there()) return;
  with_access<ColumnSums>(a.shape.type, a.shape.channels, a, of, lanes);
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

/// One of the two sums of an item, in every thread of the channel.
PUMICE_DEVICE double item_sum(const ColumnShape& shape, const float* partial, int32_t item,
                              int32_t which, const FinishSums& sums) {
  const int32_t channel = FinishSums::channel();
  const int32_t shares = shares_of(shape, item_size(shape.rows, item));
  double sum = 0.0;
  if (channel < shape.channels) {
    PUMICE_UNROLL_BY(4)
    for (int32_t share = FinishSums::lane(); share < shares; share += FinishSums::kLanes)
      sum += static_cast<double>(partial[partial_row(shape, item, share, which) + channel]);
  }
  return sums.add(sum);
}

PUMICE_KERNEL PUMICE_THREADS(kFinishThreads) void finish_sums(PUMICE_ARGUMENT(FinishSumArguments)
                                                                  a) {
  wait_for_previous();
  PUMICE_BLOCK_SHARED(FinishSums::Values, values);
  const FinishSums sums(values);
  const int32_t channel = FinishSums::channel();
  for (int32_t item = 0; item < a.shape.rows.items; ++item) {
    double sum = item_sum(a.shape, a.partial, item, a.second ? 1 : 0, sums);
    if (channel >= a.shape.channels || FinishSums::lane() != 0) continue;
    const int64_t size = item_size(a.shape.rows, item);
    if (a.average && size > 0) sum /= static_cast<double>(size);
    const float value = a.shape.rows.rows.poisoned() ? quiet_nan() : static_cast<float>(sum);
    store_element(a.out_type, a.out, int64_t{item} * a.shape.channels + channel, value);
  }
}

PUMICE_KERNEL PUMICE_THREADS(kFinishThreads) void finish_norm_gradient(
    PUMICE_ARGUMENT(NormGradientArguments) a) {
  wait_for_previous();
  PUMICE_BLOCK_SHARED(FinishSums::Values, values);
  const FinishSums sums(values);
  const int32_t channel = FinishSums::channel();
  const bool mine = channel < a.shape.channels;
  double weight = 0.0;
  double bias = 0.0;
  for (int32_t item = 0; item < a.shape.rows.items; ++item) {
    const double plain = item_sum(a.shape, a.partial, item, 0, sums);
    const double moment = item_sum(a.shape, a.partial, item, 1, sums);
    if (!mine) continue;
    const int64_t at = int64_t{item} * a.shape.channels + channel;
    weight += moment *
              (a.inverse_deviation == nullptr ? 1.0 : static_cast<double>(a.inverse_deviation[at]));
    bias += plain;
  }
  if (!mine || FinishSums::lane() != 0) return;
  const bool poisoned = a.shape.rows.rows.poisoned();
  a.grad_weight[channel] = poisoned ? quiet_nan() : static_cast<float>(weight);
  a.grad_bias[channel] = poisoned ? quiet_nan() : static_cast<float>(bias);
}

}   // namespace pumice
