// Normalisation of single rows.
#include <cmath>
#include <vector>

#include "ops/cpu/normalization.hpp"

namespace pumice::cpu {
namespace {

/// Σ term(i) in eight lanes, so that the additions of one row overlap and vectorise.
template <class Term> double sum_of(std::int64_t n, const Term& term) {
  constexpr std::int64_t kLanes = 8;
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += term(i + lane);
  }
  for (std::int64_t lane = 0; i < n; ++i, ++lane)
    lanes[lane] += term(i);
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

template <class C> std::vector<C> values(ConstTensorView tensor, std::int64_t size, C otherwise) {
  if (!tensor.defined()) return std::vector<C>(static_cast<std::size_t>(size), otherwise);
  const auto span = tensor.span<C>();
  return {span.begin(), span.end()};
}

}   // namespace

void layer_norm(ConstTensorView features, ConstTensorView weight, ConstTensorView bias,
                double epsilon, TensorView output, TensorView mean, TensorView inverse_deviation) {
  const std::int64_t channels = features.extent(1);
  dispatch_floating(features.dtype(), "layer_norm", [&]<class T>(T) {
    using C = compute_t<T>;
    const std::vector<C> w = values<C>(weight, channels, 1);
    const std::vector<C> b = values<C>(bias, channels, 0);
    parallel_for(features.rows(), row_grain(channels), [&](std::int64_t begin, std::int64_t end) {
      std::vector<C> scratch(static_cast<std::size_t>(channels));
      std::vector<C> result(static_cast<std::size_t>(channels));
      for (std::int64_t row = begin; row < end; ++row) {
        const C* const x = widened(features.data<T>() + row * channels, scratch.data(), channels);
        const auto count = static_cast<double>(channels);
        const double m =
            sum_of(channels, [&](std::int64_t i) { return static_cast<double>(x[i]); }) / count;
        const double variance = sum_of(channels,
                                       [&](std::int64_t i) {
                                         const double d = static_cast<double>(x[i]) - m;
                                         return d * d;
                                       }) /
                                count;
        const C center = static_cast<C>(m);
        const C scale = static_cast<C>(1.0 / std::sqrt(variance + epsilon));
        PUMICE_INDEPENDENT
        for (std::int64_t i = 0; i < channels; ++i) {
          const auto c = static_cast<std::size_t>(i);
          result[c] = (x[i] - center) * scale * w[c] + b[c];
        }
        narrow_row(result.data(), output.data<T>() + row * channels, channels);
        mean.data<C>()[row] = center;
        inverse_deviation.data<C>()[row] = scale;
      }
    });
  });
}

void layer_norm_gradient(ConstTensorView features, ConstTensorView grad_output,
                         ConstTensorView weight, ConstTensorView mean,
                         ConstTensorView inverse_deviation, TensorView grad_features,
                         TensorView grad_weight, TensorView grad_bias) {
  const std::int64_t channels = features.extent(1);
  dispatch_floating(features.dtype(), "layer_norm_gradient", [&]<class T>(T) {
    using C = compute_t<T>;
    const std::vector<C> w = values<C>(weight, channels, 1);
    const C* const m = mean.data<C>();
    const C* const s = inverse_deviation.data<C>();
    const RowChunks rows(features.rows(), channels);
    const auto chunks = static_cast<std::int64_t>(rows.chunks().size());
    Buffer<double> partial(chunks * 2 * channels);   // of the weight, of the bias
    parallel_for(chunks, 1, [&](std::int64_t first, std::int64_t last) {
      std::vector<C> scratch(static_cast<std::size_t>(3 * channels));
      C* const result = scratch.data() + 2 * channels;
      for (std::int64_t index = first; index < last; ++index) {
        const RowChunk& chunk = rows.chunks()[static_cast<std::size_t>(index)];
        double* const to_weight = partial.data() + index * 2 * channels;
        double* const to_bias = to_weight + channels;
        std::fill_n(to_weight, 2 * channels, 0.0);
        for (std::int64_t row = chunk.begin; row < chunk.end; ++row) {
          const C* const x = widened(features.data<T>() + row * channels, scratch.data(), channels);
          const C* const g =
              widened(grad_output.data<T>() + row * channels, scratch.data() + channels, channels);
          const C center = m[row];
          const C scale = s[row];
          const auto count = static_cast<double>(channels);
          const double mean_grad =
              sum_of(channels,
                     [&](std::int64_t i) {
                       return static_cast<double>(g[i] * w[static_cast<std::size_t>(i)]);
                     }) /
              count;
          const double moment =
              sum_of(channels,
                     [&](std::int64_t i) {
                       const C h = (x[i] - center) * scale;
                       return static_cast<double>(g[i] * w[static_cast<std::size_t>(i)]) *
                              static_cast<double>(h);
                     }) /
              count;
          PUMICE_INDEPENDENT
          for (std::int64_t i = 0; i < channels; ++i) {
            const C h = (x[i] - center) * scale;
            result[i] = (g[i] * w[static_cast<std::size_t>(i)] - static_cast<C>(mean_grad) -
                         h * static_cast<C>(moment)) *
                        scale;
            to_weight[i] += static_cast<double>(g[i] * h);
            to_bias[i] += static_cast<double>(g[i]);
          }
          narrow_row(result, grad_features.data<T>() + row * channels, channels);
        }
      }
    });
    std::vector<double> total(static_cast<std::size_t>(2 * channels), 0.0);
    for (std::int64_t i = 0; i < partial.size(); ++i) {
      total[static_cast<std::size_t>(i % (2 * channels))] += partial[i];
    }
    for (std::int64_t c = 0; c < channels; ++c) {
      grad_weight.data<C>()[c] = static_cast<C>(total[static_cast<std::size_t>(c)]);
      grad_bias.data<C>()[c] = static_cast<C>(total[static_cast<std::size_t>(channels + c)]);
    }
  });
}

}   // namespace pumice::cpu
