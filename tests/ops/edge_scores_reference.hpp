// Scores of additive attention in float64, by loops over a list of entries.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <pumice/ops/edge_scores.hpp>

#include "graphs/random_pattern.hpp"
#include "kernels/problem.hpp"

namespace pumice::test {

/// One problem of one type, and what comes of it.
struct ScoreProblem {
  ScoreProblem(const PatternCase& of, DType type, std::int64_t channels_of_all,
               std::int64_t number_of_heads, bool of_entries, double slope)
      : one(of),
        channels(channels_of_all),
        heads(number_of_heads),
        negative_slope(slope),
        target(random_tensor({of.rows, channels}, type, 1)),
        source(random_tensor({of.columns, channels}, type, 2)),
        attention(random_tensor({heads, channels / heads}, type, 3)),
        grad(random_tensor({of.entries(), heads}, type, 4)) {
    if (of_entries) entry = random_tensor({of.entries(), channels}, type, 5);
    solve();
  }

  const PatternCase& one;
  std::int64_t channels, heads;
  double negative_slope;
  Tensor target, source, attention, grad, entry;
  std::vector<double> score;   // [entries · heads]
  std::vector<double> of_target, of_source, of_attention, of_entry;

 private:
  static std::size_t index(std::int64_t at) { return static_cast<std::size_t>(at); }

  void solve() {
    const Tensor t = target.to(DType::f64), s = source.to(DType::f64), a = attention.to(DType::f64),
                 g = grad.to(DType::f64), e = entry.defined() ? entry.to(DType::f64) : Tensor();
    score.assign(index(one.entries() * heads), 0);
    of_target.assign(index(one.rows * channels), 0);
    of_source.assign(index(one.columns * channels), 0);
    of_attention.assign(index(channels), 0);
    of_entry.assign(index(one.entries() * channels), 0);
    for (std::int64_t i = 0; i < one.entries(); ++i) {
      for (std::int64_t c = 0; c < channels; ++c) {
        const std::int64_t row = one.row[index(i)] * channels + c;
        const std::int64_t column = one.column[index(i)] * channels + c;
        const std::int64_t head = i * heads + c / (channels / heads);
        const double z = t.data<double>()[row] + s.data<double>()[column] +
                         (e.defined() ? e.data<double>()[i * channels + c] : 0);
        const double slope = z > 0 ? 1 : negative_slope;
        const double weight = a.data<double>()[c], gradient = g.data<double>()[head];
        score[index(head)] += weight * slope * z;
        of_target[index(row)] += gradient * weight * slope;
        of_source[index(column)] += gradient * weight * slope;
        of_entry[index(i * channels + c)] = gradient * weight * slope;
        of_attention[index(c)] += gradient * slope * z;
      }
    }
  }
};

/// A row of three entries, of which the sum of the second is minus infinity in every channel and
/// the attention above 0: its score has no share, and so no gradient.
struct SilencedScores {
  explicit SilencedScores(double negative_slope, std::int64_t of_channels)
      : channels(of_channels), slope(negative_slope) {
    target = Tensor::full({1, channels}, DType::f32, -1);
    source = Tensor::full({2, channels}, DType::f32, 0.5);
    attention = Tensor::full({1, channels}, DType::f32, 2);
    entry = Tensor::zeros({3, channels}, DType::f32);
    const float grads[] = {1.0F, 0.0F, 3.0F};
    grad = Tensor::from(std::span<const float>(grads), {3, 1});
    for (std::int64_t c = 0; c < channels; ++c)
      entry.data<float>()[channels + c] = -std::numeric_limits<float>::infinity();
    // The sums of the others are -0.5 in every channel.
    const double all = static_cast<double>(channels), other = 2 * slope * -0.5 * all;
    score = {other, -std::numeric_limits<double>::infinity(), other};
    of_target.assign(static_cast<std::size_t>(channels), 4 * 2 * slope);
    of_attention.assign(static_cast<std::size_t>(channels), 4 * slope * -0.5);
    of_entry.assign(static_cast<std::size_t>(3 * channels), 0);
    for (std::int64_t c = 0; c < channels; ++c) {
      of_entry[static_cast<std::size_t>(c)] = 2 * slope;
      of_entry[static_cast<std::size_t>(2 * channels + c)] = 3 * 2 * slope;
    }
  }

  AdditiveScores scores() const { return {target, source, attention, entry, slope}; }

  PatternCase one{"silenced", 1, 2, {0, 0, 0}, {0, 1, 1}};
  std::int64_t channels;
  double slope;
  Tensor target, source, attention, entry, grad;
  std::vector<double> score, of_target, of_attention, of_entry;
};

}   // namespace pumice::test
