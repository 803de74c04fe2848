// Scores of additive attention in float64, by loops over a list of entries.
#pragma once

#include <cstdint>
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

}   // namespace pumice::test
