// Norms of single rows, and their gradients with respect to the features: a warp has a row, which
// it reads two or three times, from cache but for the first.
#pragma once

#include <pumice/ops/column_walk.h>
#include <pumice/warp/scan.h>

namespace pumice {

/// Calls body(first channel of a chunk) for the chunks of this lane.
template <int32_t kCount, class Body>
PUMICE_DEVICE void for_chunks(int32_t channels, const Body& body) {
  PUMICE_UNROLL_BY(2)
  for (int32_t channel = lane_index() * kCount; channel < channels;
       channel += kWarpThreads * kCount)
    body(channel);
}

template <class Access>
PUMICE_DEVICE void layer_norm_row(const LayerNormArguments& a, int64_t row) {
  constexpr int32_t kCount = Access::kCount;
  const int64_t first = row * a.channels;
  const float share = 1.0f / static_cast<float>(a.channels);
  float sum = 0.0f;
  for_chunks<kCount>(a.channels, [&](int32_t channel) {
    typename Access::Chunk x;
    Access::load(a.in, first + channel, x);
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i)
      sum += x[i];
  });
  const float mean = warp_sum(sum) * share;
  sum = 0.0f;
  for_chunks<kCount>(a.channels, [&](int32_t channel) {
    typename Access::Chunk x;
    Access::load(a.in, first + channel, x);
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i)
      sum += (x[i] - mean) * (x[i] - mean);
  });
  const double variance = static_cast<double>(warp_sum(sum) * share);
  const float scale = static_cast<float>(1.0 / sqrt(variance + a.epsilon));
  if (lane_index() == 0) {
    a.new_mean[row] = mean;
    a.new_inverse_deviation[row] = scale;
  }
  for_chunks<kCount>(a.channels, [&](int32_t channel) {
    typename Access::Chunk x, weight, bias;
    Access::load(a.in, first + channel, x);
    Access::load_or(a.weight, channel, 1.0f, weight);
    Access::load_or(a.bias, channel, 0.0f, bias);
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i)
      x[i] = (x[i] - mean) * scale * weight[i] + bias[i];
    Access::store(a.out, first + channel, x);
  });
}

/// dx = (g w − mean(g w) − h · mean(g w h)) · inverse_deviation, h the normalised features.
template <class Access>
PUMICE_DEVICE void layer_norm_gradient_row(const LayerNormArguments& a, int64_t row) {
  constexpr int32_t kCount = Access::kCount;
  const int64_t first = row * a.channels;
  const float share = 1.0f / static_cast<float>(a.channels);
  const float mean = a.mean[row], scale = a.inverse_deviation[row];
  const auto load = [&](int32_t channel, typename Access::Chunk& g, typename Access::Chunk& h) {
    typename Access::Chunk weight;
    Access::load(a.grad, first + channel, g);
    Access::load(a.in, first + channel, h);
    Access::load_or(a.weight, channel, 1.0f, weight);
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i) {
      g[i] *= weight[i];
      h[i] = (h[i] - mean) * scale;
    }
  };
  float plain = 0.0f, moment = 0.0f;
  for_chunks<kCount>(a.channels, [&](int32_t channel) {
    typename Access::Chunk g, h;
    load(channel, g, h);
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i) {
      plain += g[i];
      moment += g[i] * h[i];
    }
  });
  plain = warp_sum(plain) * share;
  moment = warp_sum(moment) * share;
  for_chunks<kCount>(a.channels, [&](int32_t channel) {
    typename Access::Chunk g, h;
    load(channel, g, h);
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i)
      g[i] = (g[i] - plain - h[i] * moment) * scale;
    Access::store(a.out, first + channel, g);
  });
}

struct LayerNorm {
  template <class Access> PUMICE_DEVICE static void run(const LayerNormArguments& a, int64_t row) {
    if (a.grad == nullptr) {
      layer_norm_row<Access>(a, row);
    } else {
      layer_norm_gradient_row<Access>(a, row);
    }
  }
};

PUMICE_KERNEL PUMICE_THREADS(kColumnThreads) void layer_norm_rows(
    PUMICE_ARGUMENT(LayerNormArguments) a) {
  wait_for_previous();
  if (poisoned_rows(a.rows, a.channels, a.type, a.out)) return;
  const int64_t row = int64_t{block_index()} * (kColumnThreads / kWarpThreads) + warp_index();
  if (row >= a.rows.rows()) return;
  with_access<LayerNorm>(a.type, a.channels, a, row);
}

}   // namespace pumice
