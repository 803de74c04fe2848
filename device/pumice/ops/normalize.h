// Rows normalised with the statistics of their item, and the gradient of that. A thread keeps its
// columns, so that what depends on the channel is read once a share.
#pragma once

#include <pumice/ops/column_walk.h>

namespace pumice {

struct NormalizeRows {
  template <class Access> PUMICE_DEVICE static void run(const NormalizeArguments& a) {
    constexpr int32_t kCount = Access::kCount;
    const ColumnWalk<kCount> walk(a.shape);
    typename Access::Chunk mean, factor, weight, bias;
    Access::load_or(a.mean, walk.statistic(), 0.0f, mean);
    Access::load_or(a.inverse_deviation, walk.statistic(), 0.0f, factor);
    Access::load_or(a.weight, walk.channel(), 1.0f, weight);
    Access::load_or(a.bias, walk.channel(), 0.0f, bias);
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i)
      factor[i] *= weight[i];
    walk.for_rows([&](int64_t row) {
      const int64_t element = row * a.shape.channels + walk.channel();
      typename Access::Chunk x;
      Access::load(a.in, element, x);
      PUMICE_UNROLL
      for (int32_t i = 0; i < kCount; ++i)
        x[i] = (x[i] - mean[i]) * factor[i] + bias[i];
      if (a.residual != nullptr) {
        typename Access::Chunk other;
        Access::load(a.residual, element, other);
        PUMICE_UNROLL
        for (int32_t i = 0; i < kCount; ++i)
          x[i] += other[i];
      }
      PUMICE_UNROLL
      for (int32_t i = 0; i < kCount; ++i)
        x[i] = a.relu && x[i] < 0.0f ? 0.0f : x[i];   // a NaN stays one
      Access::store(a.out, element, x);
    });
  }
};

PUMICE_KERNEL PUMICE_THREADS(kColumnThreads) void normalize_rows(PUMICE_ARGUMENT(NormalizeArguments)
                                                                     a) {
  if (poisoned_rows(a.shape.rows.rows, a.shape.channels, a.shape.type, a.out)) return;
  with_access<NormalizeRows>(a.shape.type, a.shape.channels, a);
}

struct NormalizeGradient {
  template <class Access> PUMICE_DEVICE static void run(const FeatureGradientArguments& a) {
    constexpr int32_t kCount = Access::kCount;
    const ColumnWalk<kCount> walk(a.shape);
    typename Access::Chunk mean, factor, weight, mean_grad, slope;
    Access::load_or(a.mean, walk.statistic(), 0.0f, mean);
    Access::load_or(a.inverse_deviation, walk.statistic(), 0.0f, factor);
    Access::load_or(a.weight, walk.channel(), 1.0f, weight);
    Access::load_or(a.mean_grad, walk.statistic(), 0.0f, mean_grad);
    Access::load_or(a.slope, walk.statistic(), 0.0f, slope);
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i)
      factor[i] *= weight[i];
    walk.for_rows([&](int64_t row) {
      const int64_t element = row * a.shape.channels + walk.channel();
      typename Access::Chunk x, g;
      Access::load(a.in, element, x);
      Access::load(a.grad, element, g);
      pass_relu<Access>(a.relu, element, g);
      if (a.passed != nullptr) Access::store(a.passed, element, g);
      PUMICE_UNROLL
      for (int32_t i = 0; i < kCount; ++i)
        g[i] = (g[i] - mean_grad[i] - (x[i] - mean[i]) * slope[i]) * factor[i];
      Access::store(a.out, element, g);
    });
  }
};

PUMICE_KERNEL PUMICE_THREADS(kColumnThreads) void normalize_gradient(
    PUMICE_ARGUMENT(FeatureGradientArguments) a) {
  const RowCountRef& rows = a.shape.rows.rows;
  if (a.passed != nullptr) poisoned_rows(rows, a.shape.channels, a.shape.type, a.passed);
  if (poisoned_rows(rows, a.shape.channels, a.shape.type, a.out)) return;
  with_access<NormalizeGradient>(a.shape.type, a.shape.channels, a);
}

}   // namespace pumice
