// Normalisation over rows: column sums in fixed chunks, then one pass that applies them.
#include "ops/cpu/normalization.hpp"

#include <vector>

#include "ops/cpu/row_chunks.hpp"

namespace pumice::cpu {
namespace {

/// Calls body(row_piece_begin, n, item) in parallel: pieces of whole rows (or one row where rows of
/// an item are apart), each at most `period` elements.
template <class Body>
void for_row_pieces(const RowChunks& rows, std::int64_t channels, std::int64_t period,
                    const Body& body) {
  parallel_for(static_cast<std::int64_t>(rows.chunks().size()), 1,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t c = first; c < last; ++c) {
                   const RowChunk& chunk = rows.chunks()[static_cast<std::size_t>(c)];
                   if (rows.contiguous()) {
                     const std::int64_t end = chunk.end * channels;
                     for (std::int64_t i = chunk.begin * channels; i < end; i += period) {
                       body(i, std::min(period, end - i), chunk.item);
                     }
                   } else {
                     for (std::int64_t p = chunk.begin; p < chunk.end; ++p) {
                       body(rows.row(p) * channels, channels, chunk.item);
                     }
                   }
                 }
               });
}

/// values [items, C] repeated along each item's period: element i of a piece has its value at i.
template <class C, class Value>
std::vector<C> repeated(std::int64_t items, std::int64_t channels, std::int64_t period,
                        const Value& value) {
  std::vector<C> result(static_cast<std::size_t>(items * period));
  for (std::int64_t item = 0; item < items; ++item) {
    for (std::int64_t i = 0; i < period; ++i) {
      result[static_cast<std::size_t>(item * period + i)] = value(item, i % channels);
    }
  }
  return result;
}

/// A pointer that reads `otherwise` when the parameter is undefined.
template <class C> auto parameter(ConstTensorView tensor, C otherwise) {
  const C* data = tensor.defined() ? tensor.data<C>() : nullptr;
  return [data, otherwise](std::int64_t c) { return data == nullptr ? otherwise : data[c]; };
}

}   // namespace

Moments moments(ConstTensorView features, const RowChunks& rows) {
  const std::int64_t channels = features.extent(1);
  const auto size = static_cast<std::size_t>(rows.items() * channels);
  Moments result{std::vector<double>(size, 0.0), std::vector<double>(size, 0.0)};
  if (size == 0) return result;
  dispatch_floating(features.dtype(), "normalization", [&]<class T>(T) {
    const std::int64_t period = period_of(channels);
    const T* const in = features.data<T>();
    // Sums of x - shift and of its square, shift being a row of the item: then (mean - shift)² is
    // at most N times the variance, and the difference below loses no more than N · 2⁻⁵³ of it.
    std::vector<std::int64_t> first(static_cast<std::size_t>(rows.items()), -1);
    for (const RowChunk& chunk : rows.chunks()) {
      std::int64_t& row = first[static_cast<std::size_t>(chunk.item)];
      if (row < 0) row = rows.row(chunk.begin);
    }
    const auto shift =
        repeated<double>(rows.items(), channels, period, [&](std::int64_t item, std::int64_t c) {
          const std::int64_t row = first[static_cast<std::size_t>(item)];
          return row < 0 ? 0.0 : static_cast<double>(widen(in[row * channels + c]));
        });
    const auto add = [&](const auto& sums, std::int64_t item, const auto* x, std::int64_t n) {
      const double* const from = shift.data() + item * period;
      double* const sum = sums[0];
      double* const squares = sums[1];
      PUMICE_INDEPENDENT
      for (std::int64_t i = 0; i < n; ++i) {
        const double d = static_cast<double>(x[i]) - from[i];
        sum[i] += d;
        squares[i] += d * d;
      }
    };
    const std::vector<double> sums = column_sums<2>(rows, channels, add, in);
    for (std::int64_t item = 0; item < rows.items(); ++item) {
      const auto count = static_cast<double>(rows.rows_of(item));
      if (count == 0) continue;
      for (std::int64_t c = 0; c < channels; ++c) {
        const double mean = sums[static_cast<std::size_t>((2 * item) * channels + c)] / count;
        const double square = sums[static_cast<std::size_t>((2 * item + 1) * channels + c)] / count;
        const auto at = static_cast<std::size_t>(item * channels + c);
        result.mean[at] = shift[static_cast<std::size_t>(item * period + c)] + mean;
        const double variance = square - mean * mean;
        result.variance[at] = variance < 0 ? 0 : variance;   // a NaN stays
      }
    }
  });
  return result;
}

void normalize(ConstTensorView features, const RowChunks& rows, ConstTensorView mean,
               ConstTensorView inverse_deviation, ConstTensorView weight, ConstTensorView bias,
               TensorView output) {
  const std::int64_t channels = features.extent(1);
  if (channels == 0) return;
  const std::int64_t period = period_of(channels);
  dispatch_floating(features.dtype(), "normalization", [&]<class T>(T) {
    using C = compute_t<T>;
    const auto w = parameter<C>(weight, 1);
    const auto b = parameter<C>(bias, 0);
    const C* const m = mean.data<C>();
    const C* const s = inverse_deviation.data<C>();
    const auto at = [&](std::int64_t item, std::int64_t c) { return item * channels + c; };
    const auto center = repeated<C>(rows.items(), channels, period,
                                    [&](auto item, auto c) { return m[at(item, c)]; });
    const auto factor = repeated<C>(rows.items(), channels, period,
                                    [&](auto item, auto c) { return s[at(item, c)] * w(c); });
    const auto offset =
        repeated<C>(rows.items(), channels, period, [&](auto, auto c) { return b(c); });
    for_row_pieces(
        rows, channels, period, [&](std::int64_t begin, std::int64_t n, std::int64_t item) {
          const C* const a = center.data() + item * period;
          const C* const f = factor.data() + item * period;
          const C* const o = offset.data() + item * period;
          C scratch[kPiece];
          C result[kPiece];
          for (std::int64_t piece = 0; piece < n; piece += kPiece) {
            const std::int64_t size = std::min(kPiece, n - piece);
            const C* const x = widened(features.data<T>() + begin + piece, scratch, size);
            C* to = result;
            if constexpr (is_wide<T>) to = output.data<T>() + begin + piece;
            PUMICE_INDEPENDENT
            for (std::int64_t i = 0; i < size; ++i) {
              to[i] = (x[i] - a[piece + i]) * f[piece + i] + o[piece + i];
            }
            if constexpr (!is_wide<T>) narrow_row(to, output.data<T>() + begin + piece, size);
          }
        });
  });
}

void normalize_gradient(ConstTensorView features, ConstTensorView grad_output,
                        const RowChunks& rows, ConstTensorView mean,
                        ConstTensorView inverse_deviation, ConstTensorView weight,
                        bool constant_statistics, TensorView grad_features, TensorView grad_weight,
                        TensorView grad_bias) {
  const std::int64_t channels = features.extent(1);
  if (channels == 0) return;
  const std::int64_t period = period_of(channels);
  dispatch_floating(features.dtype(), "normalization", [&]<class T>(T) {
    using C = compute_t<T>;
    const auto w = parameter<C>(weight, 1);
    const C* const m = mean.data<C>();
    const C* const s = inverse_deviation.data<C>();
    const auto at = [&](std::int64_t item, std::int64_t c) { return item * channels + c; };
    const auto center = repeated<C>(rows.items(), channels, period,
                                    [&](auto item, auto c) { return m[at(item, c)]; });
    // Σ g and Σ g · (x - mean), per item and channel.
    const auto add = [&](const auto& sums, std::int64_t item, const auto* x, const auto* g,
                         std::int64_t n) {
      const C* const a = center.data() + item * period;
      double* const plain = sums[0];
      double* const moment = sums[1];
      PUMICE_INDEPENDENT
      for (std::int64_t i = 0; i < n; ++i) {
        plain[i] += static_cast<double>(g[i]);
        moment[i] += static_cast<double>(g[i]) * static_cast<double>(x[i] - a[i]);
      }
    };
    const std::vector<double> sums =
        column_sums<2>(rows, channels, add, features.data<T>(), grad_output.data<T>());
    const auto plain = [&](std::int64_t item, std::int64_t c) {
      return sums[static_cast<std::size_t>((2 * item) * channels + c)];
    };
    const auto moment = [&](std::int64_t item, std::int64_t c) {
      return sums[static_cast<std::size_t>((2 * item + 1) * channels + c)];
    };
    for (std::int64_t c = 0; c < channels; ++c) {
      double to_weight = 0;
      double to_bias = 0;
      for (std::int64_t item = 0; item < rows.items(); ++item) {
        to_weight += moment(item, c) * static_cast<double>(s[at(item, c)]);
        to_bias += plain(item, c);
      }
      grad_weight.data<C>()[c] = static_cast<C>(to_weight);
      grad_bias.data<C>()[c] = static_cast<C>(to_bias);
    }
    // dx = w s (g - mean(g) - s² (x - mean) mean(g (x - mean))); without the means if constant.
    const auto count = [&](std::int64_t item) {
      return static_cast<double>(std::max<std::int64_t>(1, rows.rows_of(item)));
    };
    const auto factor = repeated<C>(rows.items(), channels, period,
                                    [&](auto item, auto c) { return s[at(item, c)] * w(c); });
    const auto mean_grad = repeated<C>(rows.items(), channels, period, [&](auto item, auto c) {
      return constant_statistics ? C{0} : static_cast<C>(plain(item, c) / count(item));
    });
    const auto slope = repeated<C>(rows.items(), channels, period, [&](auto item, auto c) {
      const auto deviation = static_cast<double>(s[at(item, c)]);
      return constant_statistics
                 ? C{0}
                 : static_cast<C>(moment(item, c) / count(item) * deviation * deviation);
    });
    for_row_pieces(
        rows, channels, period, [&](std::int64_t begin, std::int64_t n, std::int64_t item) {
          const C* const a = center.data() + item * period;
          const C* const f = factor.data() + item * period;
          const C* const h = mean_grad.data() + item * period;
          const C* const k = slope.data() + item * period;
          C scratch[2][kPiece];
          C result[kPiece];
          for (std::int64_t piece = 0; piece < n; piece += kPiece) {
            const std::int64_t size = std::min(kPiece, n - piece);
            const C* const x = widened(features.data<T>() + begin + piece, scratch[0], size);
            const C* const g = widened(grad_output.data<T>() + begin + piece, scratch[1], size);
            C* to = result;
            if constexpr (is_wide<T>) to = grad_features.data<T>() + begin + piece;
            PUMICE_INDEPENDENT
            for (std::int64_t i = 0; i < size; ++i) {
              const std::int64_t c = piece + i;
              to[i] = (g[i] - h[c] - (x[i] - a[c]) * k[c]) * f[c];
            }
            if constexpr (!is_wide<T>)
              narrow_row(to, grad_features.data<T>() + begin + piece, size);
          }
        });
  });
}

}   // namespace pumice::cpu
