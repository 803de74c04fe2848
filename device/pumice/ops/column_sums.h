// Sums over rows: gradients of biases and of norms, global pooling. Threads add in fp32, the lanes
// of a block in a tree, shares in fp64: no sum has more than a few hundred terms of fp32.
#pragma once

#include <pumice/ops/column_moments.h>

namespace pumice {

/// Two sums of every thread.
struct LaneSums {
  float first[kColumnThreads * kColumnVector];
  float second[kColumnThreads * kColumnVector];
};

template <class Access> class SumTerms {
 public:
  PUMICE_DEVICE SumTerms(const ColumnSumArguments& a, const ColumnWalk<Access::kCount>& walk)
      : a_(a), channel_(walk.channel()) {
    if (a.term == SumTerm::centered) Access::load_or(a.mean, walk.statistic(), 0.0f, mean_);
  }

  PUMICE_DEVICE void add(int64_t row, typename Access::Chunk& first,
                         typename Access::Chunk& second) const {
    const int64_t element = row * a_.shape.channels + channel_;
    typename Access::Chunk g, x;
    Access::load(a_.grad, element, g);
    pass_relu<Access>(a_.relu, element, g);
    PUMICE_UNROLL
    for (int32_t i = 0; i < Access::kCount; ++i)
      first[i] += g[i];
    if (a_.term == SumTerm::none) return;
    Access::load(a_.in, element, x);
    const bool by_row = a_.term == SumTerm::normalized;
    const float center = by_row ? a_.mean[row] : 0.0f;
    const float scale = by_row ? a_.inverse_deviation[row] : 1.0f;
    PUMICE_UNROLL
    for (int32_t i = 0; i < Access::kCount; ++i) {
      const float from = a_.term == SumTerm::centered ? mean_[i] : center;
      second[i] += g[i] * ((x[i] - from) * scale);
    }
  }

 private:
  const ColumnSumArguments& a_;
  int32_t channel_;
  typename Access::Chunk mean_ = {};
};

struct ColumnSums {
  template <class Access>
  PUMICE_DEVICE static void run(const ColumnSumArguments& a, LaneSums& lanes) {
    constexpr int32_t kCount = Access::kCount;
    const ColumnWalk<kCount> walk(a.shape);
    const SumTerms<Access> terms(a, walk);
    typename Access::Chunk first, second;
    fill(first, 0.0f);
    fill(second, 0.0f);
    walk.for_rows([&](int64_t row) { terms.add(row, first, second); });
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

// Asking for four blocks at once frees 64 registers a thread; left alone, the assembler spills two.
PUMICE_KERNEL PUMICE_THREADS(kColumnThreads,
                             4) void column_sums(PUMICE_ARGUMENT(ColumnSumArguments) a) {
  PUMICE_BLOCK_SHARED(LaneSums, lanes);
  with_access<ColumnSums>(a.shape.type, a.shape.channels, a, lanes);
}

/// One of the two sums of an item, in every thread of the channel.
PUMICE_DEVICE double item_sum(const ColumnShape& shape, const float* partial, int32_t item,
                              int32_t which, const FinishSums& sums) {
  const int32_t channel = FinishSums::channel();
  double sum = 0.0;
  for_shares(shape, item, [&](int32_t share, int64_t) {
    if (channel < shape.channels)
      sum += static_cast<double>(partial[partial_row(shape, item, share, which) + channel]);
  });
  return sums.add(sum);
}

PUMICE_KERNEL PUMICE_THREADS(kFinishThreads) void finish_sums(PUMICE_ARGUMENT(FinishSumArguments)
                                                                  a) {
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
    const double deviation =
        a.inverse_deviation == nullptr ? 1.0 : static_cast<double>(a.inverse_deviation[at]);
    weight += moment * deviation;
    bias += plain;
    if (a.mean_grad == nullptr || FinishSums::lane() != 0) continue;
    const int64_t size = item_size(a.shape.rows, item);
    const double count = size > 0 ? static_cast<double>(size) : 1.0;
    a.mean_grad[at] = static_cast<float>(plain / count);
    a.slope[at] = static_cast<float>(moment / count * deviation * deviation);
  }
  if (!mine || FinishSums::lane() != 0) return;
  const bool poisoned = a.shape.rows.rows.poisoned();
  a.grad_weight[channel] = poisoned ? quiet_nan() : static_cast<float>(weight);
  a.grad_bias[channel] = poisoned ? quiet_nan() : static_cast<float>(bias);
}

}   // namespace pumice
