// Attention over entries beside loops in float64.
#include <pumice/ops/edge_softmax.hpp>

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "ops/edge_softmax_reference.hpp"
#include "support/message_of.hpp"

namespace pumice::test {
namespace {

ConstTensorView view_of(const Tensor& tensor) {
  return tensor.defined() ? tensor.view() : ConstTensorView();
}
EdgeScores scores_of(const AttentionProblem& problem) {
  return {view_of(problem.target), view_of(problem.source), view_of(problem.entry),
          problem.negative_slope};
}

void check(const AttentionProblem& problem, double tolerance) {
  SCOPED_TRACE(problem.one.name + ", " + std::to_string(problem.heads) + " heads");
  const Csr csr = problem.one.csr();
  const Csr back = transposed(csr.view());
  const EdgeScores scores = scores_of(problem);
  const Tensor output = edge_softmax(csr.view(), scores);
  expect_all_near(output, problem.share, tolerance, "shares");
  const EdgeScoreGradients made =
      edge_softmax_gradient(csr.view(), back.view(), scores, output, problem.grad);
  EXPECT_EQ(made.target.defined(), problem.target.defined());
  EXPECT_EQ(made.source.defined(), problem.source.defined());
  EXPECT_EQ(made.entry.defined(), problem.entry.defined());
  if (made.target.defined())
    expect_all_near(made.target, problem.of_target, 8 * tolerance, "gradient of targets");
  if (made.source.defined())
    expect_all_near(made.source, problem.of_source, 8 * tolerance, "gradient of sources");
  if (made.entry.defined())
    expect_all_near(made.entry, problem.of_entry, 8 * tolerance, "gradient of entries");
}

TEST(EdgeSoftmax, IsWhatItsDefinitionSays) {
  struct Kind {
    DType type;
    double tolerance;
  };
  for (const PatternCase& one : pattern_cases()) {
    for (const auto& [type, tolerance] : {Kind{DType::f64, 1e-12}, Kind{DType::f32, 1e-5},
                                          Kind{DType::f16, 2e-3}, Kind{DType::bf16, 1.6e-2}}) {
      for (const ScoreKind& kind : kScoreKinds) {
        for (const std::int64_t heads : {1, 3})
          check({one, type, heads, kind.target, kind.source, kind.entry, 0.2}, tolerance);
      }
      check({one, type, 2, true, true, false, 1.0}, tolerance);
      check({one, type, 2, true, true, true, 0.0}, tolerance);
    }
  }
}

TEST(EdgeSoftmax, LargeScoresDoNotOverflow) {
  const PatternCase one{"", 1, 2, {0, 0}, {0, 1}};
  const Csr csr = one.csr();
  const float scores[] = {3e38F, -3e38F};
  const Tensor entry = Tensor::from(std::span<const float>(scores), {2, 1});
  const Tensor output = edge_softmax(csr.view(), {.entry = entry});
  EXPECT_EQ(output.data<float>()[0], 1.0F);
  EXPECT_EQ(output.data<float>()[1], 0.0F);
}

TEST(EdgeSoftmax, AnEntryOfMinusInfinityHasNoShareAtAnySlope) {
  for (const double slope : {0.0, 0.5, 1.0}) {
    const SilencedProblem problem(slope);
    const Csr csr = problem.one.csr();
    const EdgeScores given{.entry = problem.entry, .negative_slope = slope};
    const Tensor output = edge_softmax(csr.view(), given);
    expect_all_near(output, problem.share, 1e-6, "shares");
    expect_all_near(edge_softmax_gradient(csr.view(), {}, given, output, problem.grad).entry,
                    problem.of_entry, 1e-6, "gradient");
  }
}

TEST(EdgeSoftmax, ARowWithANaNIsNaNAndNoOther) {
  const PatternCase one{"", 2, 2, {0, 0, 1}, {0, 1, 1}};
  const Csr csr = one.csr();
  const float scores[] = {1.0F, std::numeric_limits<float>::quiet_NaN(), 1.0F};
  const Tensor entry = Tensor::from(std::span<const float>(scores), {3, 1});
  const Tensor output = edge_softmax(csr.view(), {.entry = entry});
  EXPECT_TRUE(std::isnan(output.data<float>()[0]));
  EXPECT_TRUE(std::isnan(output.data<float>()[1]));
  EXPECT_EQ(output.data<float>()[2], 1.0F);
}

TEST(EdgeSoftmax, RefusesWhatDoesNotFit) {
  const PatternCase one = random_pattern(5, 4, 12, 1);
  const Csr csr = one.csr();
  const Tensor two = Tensor::zeros({12, 2}, DType::f32), three = Tensor::zeros({5, 3}, DType::f32),
               wide = Tensor::zeros({5, 2}, DType::f64), few = Tensor::zeros({4, 2}, DType::f32);
  const auto said = [&](const EdgeScores& scores) {
    return message_of([&] { edge_softmax(csr.view(), scores); });
  };
  EXPECT_EQ(said({}),
            "edge_softmax: there are no scores: give those of targets, sources or entries");
  EXPECT_EQ(said({.target = three, .entry = two}),
            "edge_softmax: target has 3 heads where others have 2: give as many");
  EXPECT_NE(said({.target = wide, .entry = two}).find("target holds f64"), std::string::npos);
  EXPECT_EQ(said({.target = few, .entry = two}),
            "edge_softmax: target has 4 rows and the pattern 5 rows: give one row for each");
  EXPECT_NE(said({.entry = two, .negative_slope = -1}).find("negative_slope = -1"),
            std::string::npos);
  EXPECT_NE(said({.entry = two, .negative_slope = -0.5}).find("negative_slope = -0.5"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              edge_softmax_gradient(csr.view(), csr.view(), {.source = few}, two, two);
            }).find("give transposed(pattern)"),
            std::string::npos);
}

}   // namespace
}   // namespace pumice::test
