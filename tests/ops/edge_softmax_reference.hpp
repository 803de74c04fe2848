// Attention over entries in float64, by loops over a list of entries.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <pumice/ops/edge_softmax.hpp>

#include "graphs/random_pattern.hpp"
#include "kernels/problem.hpp"

namespace pumice::test {

/// Scores of one type, and what comes of them.
struct AttentionProblem {
  AttentionProblem(const PatternCase& of, DType type, std::int64_t number_of_heads, bool of_targets,
                   bool of_sources, bool of_entries, double slope)
      : one(of), heads(number_of_heads), negative_slope(slope) {
    if (of_targets) target = random_tensor({of.rows, heads}, type, 1);
    if (of_sources) source = random_tensor({of.columns, heads}, type, 2);
    if (of_entries) entry = random_tensor({of.entries(), heads}, type, 3);
    grad = random_tensor({of.entries(), heads}, type, 4);
    solve();
  }

  const PatternCase& one;
  std::int64_t heads;
  double negative_slope;
  Tensor target, source, entry, grad;
  std::vector<double> share;                            // [entries · heads]
  std::vector<double> of_target, of_source, of_entry;   // gradients

 private:
  static double at(const Tensor& wide, std::int64_t i) {
    return wide.defined() ? wide.data<double>()[i] : 0;
  }
  static Tensor wide(const Tensor& tensor) {
    return tensor.defined() ? tensor.to(DType::f64) : Tensor();
  }

  void solve() {
    const Tensor t = wide(target), s = wide(source), e = wide(entry), g = wide(grad);
    const auto entries = static_cast<std::size_t>(one.entries());
    const auto h = static_cast<std::size_t>(heads);
    share.assign(entries * h, 0);
    of_entry = share;
    of_target.assign(static_cast<std::size_t>(one.rows) * h, 0);
    of_source.assign(static_cast<std::size_t>(one.columns) * h, 0);
    for (std::int64_t row = 0; row < one.rows; ++row) {
      for (std::size_t head = 0; head < h; ++head) {
        const auto index = [&](std::int64_t of) {
          return of * heads + static_cast<std::int64_t>(head);
        };
        const auto sum_of = [&](std::size_t entry_at) {
          return at(t, index(row)) + at(s, index(one.column[entry_at])) +
                 at(e, index(static_cast<std::int64_t>(entry_at)));
        };
        const auto score_of = [&](std::size_t entry_at) {
          const double sum = sum_of(entry_at);
          return sum > 0 ? sum : negative_slope * sum;
        };
        double most = std::numeric_limits<double>::lowest(), total = 0, weighted = 0;
        for (std::size_t i = 0; i < entries; ++i)
          if (one.row[i] == row) most = std::max(most, score_of(i));
        for (std::size_t i = 0; i < entries; ++i)
          if (one.row[i] == row) total += std::exp(score_of(i) - most);
        for (std::size_t i = 0; i < entries; ++i) {
          if (one.row[i] != row) continue;
          share[i * h + head] = std::exp(score_of(i) - most) / total;
          weighted += share[i * h + head] * at(g, static_cast<std::int64_t>(i * h + head));
        }
        for (std::size_t i = 0; i < entries; ++i) {
          if (one.row[i] != row) continue;
          const double of_score =
              share[i * h + head] * (at(g, static_cast<std::int64_t>(i * h + head)) - weighted);
          const double of_sum = sum_of(i) > 0 ? of_score : negative_slope * of_score;
          of_entry[i * h + head] = of_sum;
          of_target[static_cast<std::size_t>(index(row))] += of_sum;
          of_source[static_cast<std::size_t>(index(one.column[i]))] += of_sum;
        }
      }
    }
  }
};

/// A row of entries whose scores are -1, minus infinity and 0, and what comes of them.
struct SilencedProblem {
  explicit SilencedProblem(double slope) {
    const float scores[] = {-1.0F, -std::numeric_limits<float>::infinity(), 0.0F};
    const float grads[] = {1.0F, 2.0F, 4.0F};
    entry = Tensor::from(std::span<const float>(scores), {3, 1});
    grad = Tensor::from(std::span<const float>(grads), {3, 1});
    const double left = std::exp(-slope), first = left / (1 + left), last = 1 / (1 + left);
    const double mean = first * 1 + last * 4;
    share = {first, 0, last};
    of_entry = {slope * first * (1 - mean), 0, slope * last * (4 - mean)};   // at 0 as below it
  }

  PatternCase one{"silenced", 1, 2, {0, 0, 0}, {0, 1, 1}};
  Tensor entry, grad;
  std::vector<double> share, of_entry;
};

/// Which scores there are: of targets, of sources, of entries.
struct ScoreKind {
  bool target, source, entry;
};
inline constexpr ScoreKind kScoreKinds[] = {
    {true, true, false}, {false, false, true}, {true, true, true}, {false, true, false}};

inline void expect_all_near(const Tensor& got, const std::vector<double>& expected,
                            double tolerance, const char* what) {
  const Tensor wide = got.to(DType::f64);
  ASSERT_EQ(static_cast<std::size_t>(wide.elements()), expected.size()) << what;
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(wide.data<double>()[i], expected[i],
                tolerance * std::max(1.0, std::abs(expected[i])))
        << what << " at " << i;
}

}   // namespace pumice::test
