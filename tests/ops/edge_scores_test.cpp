// Scores of additive attention beside loops in float64.
// Covers kernels/cpu/score_gradient too.
#include <pumice/ops/edge_scores.hpp>

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include <pumice/core/parallel.hpp>

#include "ops/edge_scores_reference.hpp"
#include "ops/edge_softmax_reference.hpp"
#include "support/message_of.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {
namespace {

struct Results {
  Tensor score;
  AdditiveScoreGradients gradients;

  explicit Results(const ScoreProblem& problem) {
    const Csr csr = problem.one.csr();
    const Csr back = transposed(csr.view());
    const AdditiveScores scores{problem.target, problem.source, problem.attention,
                                problem.entry.defined() ? problem.entry.view() : ConstTensorView(),
                                problem.negative_slope};
    score = edge_scores(csr.view(), scores);
    gradients = edge_scores_gradient(csr.view(), back.view(), scores, problem.grad);
  }
};

/// Gradients are sums, whose terms cancel: to a tolerance of several roundings.
void check(const ScoreProblem& problem, double tolerance) {
  SCOPED_TRACE(problem.one.name + ", " + std::to_string(problem.channels) + " channels, " +
               std::to_string(problem.heads) + " heads" +
               (problem.entry.defined() ? ", rows of entries" : ""));
  const Results got(problem);
  expect_all_near(got.score, problem.score, 8 * tolerance, "scores");
  expect_all_near(got.gradients.target, problem.of_target, 16 * tolerance, "gradient of targets");
  expect_all_near(got.gradients.source, problem.of_source, 16 * tolerance, "gradient of sources");
  expect_all_near(got.gradients.attention, problem.of_attention, 64 * tolerance,
                  "gradient of attention");
  EXPECT_EQ(got.gradients.entry.defined(), problem.entry.defined());
  if (problem.entry.defined())
    expect_all_near(got.gradients.entry, problem.of_entry, tolerance, "gradient of entries");
}

TEST(EdgeScores, AreWhatTheirDefinitionSays) {
  struct Kind {
    DType type;
    double tolerance;   // in f32 of sums of 3,000 terms, else of one rounding
  };
  for (const PatternCase& one : pattern_cases()) {
    for (const auto& [type, tolerance] : {Kind{DType::f64, 1e-13}, Kind{DType::f32, 4e-6},
                                          Kind{DType::f16, 1e-3}, Kind{DType::bf16, 8e-3}}) {
      check({one, type, 6, 3, false, 0.2}, tolerance);
      check({one, type, 33, 1, true, 0.2}, tolerance);
      check({one, type, 96, 2, true, 0.0}, tolerance);
    }
  }
}

TEST(EdgeScores, TakeAnyNumberOfChannels) {
  const PatternCase one = random_pattern(40, 30, 300, 5);
  for (const std::int64_t channels : {0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 64, 129, 260})
    check({one, DType::f32, channels, 1, channels % 2 == 0, 0.2}, 1e-6);
}

TEST(EdgeScores, AnEntryOfMinusInfinityHasNoShareAtAnySlope) {
  for (const double slope : {0.0, 0.5, 1.0}) {
    for (const std::int64_t channels : {1, 31, 33, 64}) {
      const SilencedScores problem(slope, channels);
      const Csr csr = problem.one.csr(), back = transposed(csr.view());
      const Tensor score = edge_scores(csr.view(), problem.scores());
      for (std::size_t e = 0; e < 3; ++e)
        EXPECT_EQ(score.span<float>()[e], static_cast<float>(problem.score[e]));
      const AdditiveScoreGradients made =
          edge_scores_gradient(csr.view(), back.view(), problem.scores(), problem.grad);
      expect_all_near(made.target, problem.of_target, 1e-6, "gradient of targets");
      expect_all_near(made.attention, problem.of_attention, 1e-6, "gradient of attention");
      expect_all_near(made.entry, problem.of_entry, 1e-6, "gradient of entries");
    }
  }
}

TEST(EdgeScores, OneThreadGivesTheBitsOfSeveral) {
  const PatternCase one = random_pattern(3000, 200, 40'000, 6);
  const ScoreProblem problem(one, DType::f32, 32, 4, true, 0.2);
  set_threads(1);
  const Results alone(problem);
  set_threads(4);
  const Results several(problem);
  set_threads(0);
  EXPECT_TRUE(same_bits(alone.score, several.score));
  EXPECT_TRUE(same_bits(alone.gradients.target, several.gradients.target));
  EXPECT_TRUE(same_bits(alone.gradients.source, several.gradients.source));
  EXPECT_TRUE(same_bits(alone.gradients.attention, several.gradients.attention));
  EXPECT_TRUE(same_bits(alone.gradients.entry, several.gradients.entry));
}

TEST(EdgeScores, ReadNoRowThatNoEntryNames) {
  const PatternCase one{"", 2, 2, {0}, {1}};
  const Csr csr = one.csr(), back = transposed(csr.view());
  Tensor x = Tensor::full({2, 4}, DType::f32, std::numeric_limits<double>::quiet_NaN());
  Tensor y = x.to(DType::f32);
  for (std::size_t c = 0; c < 4; ++c)
    x.span<float>()[c] = 1, y.span<float>()[4 + c] = 2;
  const Tensor attention = Tensor::full({1, 4}, DType::f32, 1),
               grad = Tensor::full({1, 1}, DType::f32, 1);
  const AdditiveScores scores{x, y, attention};
  EXPECT_EQ(edge_scores(csr.view(), scores).data<float>()[0], 12.0F);
  const AdditiveScoreGradients made = edge_scores_gradient(csr.view(), back.view(), scores, grad);
  for (std::size_t c = 0; c < 4; ++c) {
    EXPECT_EQ(made.attention.span<float>()[c], 3.0F);
    EXPECT_EQ(made.target.span<float>()[c], 1.0F);
    EXPECT_EQ(made.target.span<float>()[4 + c], 0.0F);   // a row without entries
    EXPECT_EQ(made.source.span<float>()[c], 0.0F);
    EXPECT_EQ(made.source.span<float>()[4 + c], 1.0F);
  }
}

TEST(EdgeScores, RefuseWhatDoesNotFit) {
  const PatternCase one = random_pattern(5, 4, 12, 1);
  const Csr csr = one.csr();
  const Tensor t = Tensor::zeros({5, 6}, DType::f32), s = Tensor::zeros({4, 6}, DType::f32),
               a = Tensor::zeros({2, 3}, DType::f32), wide = Tensor::zeros({4, 6}, DType::f64),
               narrow = Tensor::zeros({4, 5}, DType::f32), g = Tensor::zeros({12, 3}, DType::f32);
  const auto said = [&](const AdditiveScores& scores) {
    return message_of([&] { edge_scores(csr.view(), scores); });
  };
  EXPECT_EQ(said({t, t, a}),
            "edge_scores: source has 5 rows and the pattern 4 columns: give one row for each");
  EXPECT_NE(said({t, wide, a}).find("source holds f64"), std::string::npos);
  EXPECT_EQ(said({t, narrow, a}), "edge_scores: source has 5 channels and target 6: give as many");
  EXPECT_EQ(
      said({t, s, narrow}),
      "edge_scores: attention has shape [4, 5] for 6 channels: give [heads, channels / heads]");
  EXPECT_EQ(said({t, s, a, s}),
            "edge_scores: entry has 4 rows and the pattern 12 entries: give one row for each");
  EXPECT_NE(
      said({t, s, a, {}, std::numeric_limits<double>::infinity()}).find("negative_slope = inf"),
      std::string::npos);
  EXPECT_NE(message_of([&] {
              edge_scores_gradient(csr.view(), csr.view(), {t, s, a}, g);
            }).find("give transposed(pattern)"),
            std::string::npos);
  const Csr back = transposed(csr.view());
  EXPECT_EQ(message_of([&] {
              edge_scores_gradient(csr.view(), back.view(), {t, s, a}, g);
            }),
            "edge_scores_gradient: grad_output has 3 heads and attention 2: give as many");
}

}   // namespace
}   // namespace pumice::test
