// Rows normalised with the statistics of their item, and the gradient of that. Where statistics, or
// the sums that the gradient takes, still lie in shares, every block adds those of its columns up
// first. A thread keeps its columns, so that what depends on the channel is read once a share.
#pragma once

#include <pumice/ops/column_shares.h>
#include <pumice/thread/report.h>

namespace pumice {

PUMICE_DEVICE void move_towards(ElementType type, void* running, int32_t channel, double momentum,
                                double value) {
  if (running == nullptr) return;
  const double before = static_cast<double>(load_element(type, running, channel));
  store_element(type, running, channel,
                static_cast<float>((1.0 - momentum) * before + momentum * value));
}

/// What becomes of an item's statistics, but for its own use: one thread a channel.
PUMICE_DEVICE void keep_statistics(const NewStatistics& to, int64_t at, int32_t channel,
                                   int64_t size, double mean, double variance, float stored_mean,
                                   float stored_deviation) {
  to.mean[at] = stored_mean;
  to.inverse_deviation[at] = stored_deviation;
  if (size == 0) return;
  if (to.batches != nullptr && channel == 0) ++*to.batches;
  const double others = size > 1 ? static_cast<double>(size - 1) : 1.0;
  move_towards(to.running_type, to.running_mean, channel, to.momentum, mean);
  move_towards(to.running_type, to.running_variance, channel, to.momentum,
               variance * static_cast<double>(size) / others);
}

/// Shares to the mean (`first` in `scratch`) and the inverse deviation (`second`) of this block's
/// columns. Deviations are taken from the mean of the first share: as far from the mean as shares
/// are from each other, so that nothing large is subtracted.
PUMICE_DEVICE void find_statistics(const ColumnShape& shape, const BlockShare& of,
                                   const NewStatistics& own, ColumnScratch& scratch) {
  const int32_t mine = block_index_y() * kColumnTile + lane_index();
  const ShareRows rows(of);
  const double center =
      mine < shape.channels
          ? static_cast<double>(own.partial[partial_row(shape, of.item, 0, 0) + mine])
          : 0.0;
  sum_shares(
      shape, of, own.partial, scratch,
      [&](int32_t share, float mean, float square, double(&sums)[2]) {
        const double delta = static_cast<double>(mean) - center;
        const double moment = rows.of(share) * delta;
        sums[0] += moment;
        sums[1] += static_cast<double>(square) + moment * delta;
      },
      [&](int32_t channel, const double(&sums)[2]) {
        const int64_t size = rows.size();
        const double share_of_one = size > 0 ? 1.0 / static_cast<double>(size) : 0.0;
        const double shift = sums[0] * share_of_one;
        const double mean = center + shift;
        double variance = sums[1] * share_of_one - shift * shift;
        variance = variance < 0.0 ? 0.0 : variance;   // a NaN stays one
        const bool single = size == 1 && own.status != nullptr;
        const bool poisoned = shape.rows.rows.poisoned() || single;
        const bool zero = size == 0 && own.empty == EmptyItem::zero;
        const float scale = zero ? 0.0f : static_cast<float>(1.0 / sqrt(variance + own.epsilon));
        scratch.first[lane_index()] = poisoned ? quiet_nan() : static_cast<float>(mean);
        scratch.second[lane_index()] = poisoned ? quiet_nan() : scale;
        if (!of.first()) return;
        if (single && channel == 0) report(own.status, kSingleRow, own.site, 2, 1);
        keep_statistics(own, int64_t{of.item} * shape.channels + channel, channel,
                        single ? 0 : size, mean, variance, scratch.first[lane_index()],
                        scratch.second[lane_index()]);
      });
}

struct NormalizeRows {
  template <class Access>
  PUMICE_DEVICE static void run(const NormalizeArguments& a, const BlockShare& of,
                                const ColumnScratch& scratch) {
    constexpr int32_t kCount = Access::kCount;
    const ColumnWalk<kCount> walk(a.shape, of);
    const bool own = a.own.partial != nullptr;
    typename Access::Chunk mean, factor, weight, bias;
    Access::load_or(own ? scratch.first + walk.column() : a.mean + walk.statistic(), 0, 0.0f, mean);
    Access::load_or(own ? scratch.second + walk.column() : a.inverse_deviation + walk.statistic(),
                    0, 0.0f, factor);
    Access::load_or(a.parameter_type, a.weight, walk.channel(), 1.0f, weight);
    Access::load_or(a.parameter_type, a.bias, walk.channel(), 0.0f, bias);
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i)
      factor[i] *= weight[i];
    typename Access::Chunk in[static_cast<unsigned>(Access::kRowsOfSeveral)];
    typename Access::Chunk residual[static_cast<unsigned>(Access::kRowsOfSeveral)];
    walk.template for_row_batches<Access::kRowsOfSeveral>(
        [&](int32_t at, int64_t row) {
          const int64_t element = row * a.shape.channels + walk.channel();
          Access::load(a.in, element, in[at]);
          Access::load(a.residual != nullptr ? a.residual : a.in, element, residual[at]);
        },
        [&](const int64_t* rows, int32_t there) {
          PUMICE_UNROLL
          for (int32_t at = 0; at < Access::kRowsOfSeveral; ++at) {
            if (at >= there) break;
            typename Access::Chunk x;
            PUMICE_UNROLL
            for (int32_t i = 0; i < kCount; ++i) {
              x[i] = (in[at][i] - mean[i]) * factor[i] + bias[i];
              if (a.residual != nullptr) x[i] += residual[at][i];
              x[i] = a.relu && x[i] < 0.0f ? 0.0f : x[i];   // a NaN stays one
            }
            Access::store(a.out, rows[at] * a.shape.channels + walk.channel(), x);
          }
        });
  }
};

PUMICE_KERNEL PUMICE_THREADS(kColumnThreads) void normalize_rows(PUMICE_ARGUMENT(NormalizeArguments)
                                                                     a) {
  wait_for_previous();
  PUMICE_BLOCK_SHARED(ColumnScratch, scratch);
  const BlockShare of = share_of_block(a.shape);
  if (a.own.partial != nullptr && of.there()) find_statistics(a.shape, of, a.own, scratch);
  if (poisoned_rows(a.shape.rows.rows, a.shape.channels, a.shape.type, a.out)) return;
  if (!of.there()) return;
  with_access<NormalizeRows>(a.shape.type, a.shape.channels, a, of, scratch);
}

/// Shares to the mean of g (`first` in `scratch`) and the slope (`second`) of this block's columns.
PUMICE_DEVICE void find_slopes(const FeatureGradientArguments& a, const BlockShare& of,
                               ColumnScratch& scratch) {
  sum_shares(
      a.shape, of, a.partial, scratch,
      [&](int32_t, float plain, float moment, double(&sums)[2]) {
        sums[0] += static_cast<double>(plain);
        sums[1] += static_cast<double>(moment);
      },
      [&](int32_t channel, const double(&sums)[2]) {
        const double share_of_one = of.size > 0 ? 1.0 / static_cast<double>(of.size) : 1.0;
        const double deviation =
            static_cast<double>(a.inverse_deviation[int64_t{of.item} * a.shape.channels + channel]);
        const double weight = sums[1] * deviation;
        scratch.first[lane_index()] = static_cast<float>(sums[0] * share_of_one);
        scratch.second[lane_index()] = static_cast<float>(weight * share_of_one * deviation);
        if (a.grad_weight == nullptr || !of.first()) return;
        const bool poisoned = a.shape.rows.rows.poisoned();
        store_element(a.parameter_type, a.grad_weight, channel,
                      poisoned ? quiet_nan() : static_cast<float>(weight));
        store_element(a.parameter_type, a.grad_bias, channel,
                      poisoned ? quiet_nan() : static_cast<float>(sums[0]));
      });
}

struct NormalizeGradient {
  template <class Access>
  PUMICE_DEVICE static void run(const FeatureGradientArguments& a, const BlockShare& of,
                                const ColumnScratch& scratch) {
    constexpr int32_t kCount = Access::kCount;
    const ColumnWalk<kCount> walk(a.shape, of);
    typename Access::Chunk mean, factor, weight, mean_grad, slope;
    Access::load_or(a.mean, walk.statistic(), 0.0f, mean);
    Access::load_or(a.inverse_deviation, walk.statistic(), 0.0f, factor);
    Access::load_or(a.parameter_type, a.weight, walk.channel(), 1.0f, weight);
    Access::load_or(a.constant ? nullptr : scratch.first, walk.column(), 0.0f, mean_grad);
    Access::load_or(a.constant ? nullptr : scratch.second, walk.column(), 0.0f, slope);
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i)
      factor[i] *= weight[i];
    typename Access::Chunk in[static_cast<unsigned>(Access::kRowsOfSeveral)];
    typename Access::Chunk grad[static_cast<unsigned>(Access::kRowsOfSeveral)];
    typename Access::Chunk relu[static_cast<unsigned>(Access::kRowsOfSeveral)];
    walk.template for_row_batches<Access::kRowsOfSeveral>(
        [&](int32_t at, int64_t row) {
          const int64_t element = row * a.shape.channels + walk.channel();
          Access::load(a.in, element, in[at]);
          Access::load(a.grad, element, grad[at]);
          Access::load(a.relu != nullptr ? a.relu : a.grad, element, relu[at]);
        },
        [&](const int64_t* rows, int32_t there) {
          PUMICE_UNROLL
          for (int32_t at = 0; at < Access::kRowsOfSeveral; ++at) {
            if (at >= there) break;
            const int64_t element = rows[at] * a.shape.channels + walk.channel();
            typename Access::Chunk g;
            PUMICE_UNROLL
            for (int32_t i = 0; i < kCount; ++i)
              g[i] = a.relu == nullptr || relu[at][i] > 0.0f ? grad[at][i] : 0.0f;
            if (a.passed != nullptr) Access::store(a.passed, element, g);
            PUMICE_UNROLL
            for (int32_t i = 0; i < kCount; ++i)
              g[i] = (g[i] - mean_grad[i] - (in[at][i] - mean[i]) * slope[i]) * factor[i];
            Access::store(a.out, element, g);
          }
        });
  }
};

PUMICE_KERNEL PUMICE_THREADS(kColumnThreads) void normalize_gradient(
    PUMICE_ARGUMENT(FeatureGradientArguments) a) {
  wait_for_previous();
  PUMICE_BLOCK_SHARED(ColumnScratch, scratch);
  const BlockShare of = share_of_block(a.shape);
  const RowCountRef& rows = a.shape.rows.rows;
  if (a.passed != nullptr) poisoned_rows(rows, a.shape.channels, a.shape.type, a.passed);
  const bool poisoned = poisoned_rows(rows, a.shape.channels, a.shape.type, a.out);
  if (!of.there()) return;
  if (!a.constant || of.first()) find_slopes(a, of, scratch);
  if (poisoned) return;
  with_access<NormalizeGradient>(a.shape.type, a.shape.channels, a, of, scratch);
}

PUMICE_KERNEL PUMICE_THREADS(kColumnThreads) void invert_deviations(
    PUMICE_ARGUMENT(DeviationArguments) a) {
  wait_for_previous();
  const int64_t c = global_thread_index();
  if (c >= a.channels) return;
  a.out[c] = static_cast<float>(1.0 / sqrt(static_cast<double>(a.variance[c]) + a.epsilon));
}

}   // namespace pumice
