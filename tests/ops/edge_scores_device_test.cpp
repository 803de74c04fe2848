// Scores of additive attention on a device beside loops in float64.
// Covers ops/cuda/edge_scores and device/pumice/skeleton/score_gradient.h.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>

#include "ops/edge_scores_reference.hpp"
#include "ops/edge_softmax_reference.hpp"
#include "support/gpu.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {
namespace {

/// All that comes of one problem, on the host.
struct Results {
  Tensor score, target, source, attention, entry;

  Results(const ScoreProblem& problem, const Stream& stream) {
    const Csr here = problem.one.csr();
    const Csr csr = copy_to(stream, here.view());
    const Csr back = transposed(csr.view(), stream);
    const Tensor t = copy_to(stream, problem.target), s = copy_to(stream, problem.source),
                 a = copy_to(stream, problem.attention), g = copy_to(stream, problem.grad),
                 e = problem.entry.defined() ? copy_to(stream, problem.entry) : Tensor();
    const AdditiveScores scores{t, s, a, e.defined() ? e.view() : ConstTensorView(),
                                problem.negative_slope};
    score = copy_to_host(edge_scores(csr.view(), scores), stream);
    const AdditiveScoreGradients made = edge_scores_gradient(csr.view(), back.view(), scores, g);
    target = copy_to_host(made.target, stream);
    source = copy_to_host(made.source, stream);
    attention = copy_to_host(made.attention, stream);
    if (made.entry.defined()) entry = copy_to_host(made.entry, stream);
  }
};

void check(const ScoreProblem& problem, double tolerance, const Stream& stream) {
  SCOPED_TRACE(problem.one.name + ", " + std::to_string(problem.channels) + " channels, " +
               std::to_string(problem.heads) + " heads" +
               (problem.entry.defined() ? ", rows of entries" : ""));
  const Results got(problem, stream);
  expect_all_near(got.score, problem.score, 8 * tolerance, "scores");
  expect_all_near(got.target, problem.of_target, 16 * tolerance, "gradient of targets");
  expect_all_near(got.source, problem.of_source, 16 * tolerance, "gradient of sources");
  expect_all_near(got.attention, problem.of_attention, 64 * tolerance, "gradient of attention");
  if (problem.entry.defined())
    expect_all_near(got.entry, problem.of_entry, tolerance, "gradient of entries");
}

/// Rows of about one part of 256 entries, of two and of several.
PatternCase rows_around_a_part() {
  PatternCase made{"rows around a part", 5, 40, {}, {}};
  const std::int64_t entries[] = {1, 256, 257, 0, 1025};
  for (std::int64_t row = 0; row < 5; ++row) {
    for (std::int64_t e = 0; e < entries[row]; ++e) {
      made.row.push_back(row);
      made.column.push_back((e * 7 + row) % 40);
    }
  }
  return made;
}

TEST(EdgeScoresGpu, are_what_their_definition_says) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  std::vector<PatternCase> cases = pattern_cases();
  if (on_emulator()) cases.pop_back();
  cases.push_back(rows_around_a_part());
  for (const PatternCase& one : cases) {
    for (const bool entries : {false, true}) {
      check({one, DType::f32, 6, 3, entries, 0.2}, 4e-6, stream);
      check({one, DType::f16, 24, 3, entries, 0.0}, 1e-3, stream);
    }
    check({one, DType::bf16, 5, 1, true, 0.2}, 8e-3, stream);
  }
}

TEST(EdgeScoresGpu, take_any_number_of_channels) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one = random_pattern(40, 30, 300, 5);
  std::vector<std::int64_t> all{0,  1,  7,   8,   15,  16,  17,  31,  32,
                                33, 64, 128, 129, 256, 260, 512, 515, 1100};
  if (on_emulator()) all = {0, 7, 33, 260, 1100};
  for (const std::int64_t channels : all) {
    check({one, DType::f32, channels, 1, channels % 2 == 0, 0.2}, 4e-6, stream);
    check({one, DType::f16, channels, 1, channels % 2 != 0, 0.2}, 1e-3, stream);
  }
}

TEST(EdgeScoresGpu, an_entry_of_minus_infinity_has_no_share_at_any_slope) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const double slope : {0.0, 0.5, 1.0}) {
    for (const std::int64_t channels : {1, 33}) {
      const SilencedScores problem(slope, channels);
      const Csr here = problem.one.csr();
      const Csr csr = copy_to(stream, here.view()), back = transposed(csr.view(), stream);
      const Tensor t = copy_to(stream, problem.target), s = copy_to(stream, problem.source),
                   a = copy_to(stream, problem.attention), e = copy_to(stream, problem.entry),
                   g = copy_to(stream, problem.grad);
      const AdditiveScores scores{t, s, a, e, slope};
      const Tensor score = copy_to_host(edge_scores(csr.view(), scores), stream);
      for (std::size_t i = 0; i < 3; ++i)
        EXPECT_EQ(score.span<float>()[i], static_cast<float>(problem.score[i]));
      const AdditiveScoreGradients made = edge_scores_gradient(csr.view(), back.view(), scores, g);
      expect_all_near(copy_to_host(made.target, stream), problem.of_target, 1e-6, "targets");
      expect_all_near(copy_to_host(made.attention, stream), problem.of_attention, 1e-6,
                      "attention");
      expect_all_near(copy_to_host(made.entry, stream), problem.of_entry, 1e-6, "entries");
    }
  }
}

TEST(EdgeScoresGpu, give_the_same_bits_every_time) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one =
      on_emulator() ? rows_around_a_part() : random_pattern(300, 200, 400'000, 6);
  const ScoreProblem problem(one, DType::f32, 32, 2, true, 0.2);
  const Results first(problem, stream);
  for (int time = 0; time < (on_emulator() ? 1 : 100); ++time) {
    const Results again(problem, stream);
    ASSERT_TRUE(same_bits(again.score, first.score));
    ASSERT_TRUE(same_bits(again.target, first.target));
    ASSERT_TRUE(same_bits(again.source, first.source));
    ASSERT_TRUE(same_bits(again.attention, first.attention));
    ASSERT_TRUE(same_bits(again.entry, first.entry));
  }
}

}   // namespace
}   // namespace pumice::test
