// Attention over entries on a device beside loops in float64.
// Covers ops/cuda/edge_softmax.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>

#include "ops/edge_softmax_reference.hpp"
#include "support/gpu.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {
namespace {

/// All that comes of one problem, on the host.
struct Results {
  Tensor output, target, source, entry;

  Results(const AttentionProblem& problem, const Stream& stream) {
    const Csr here = problem.one.csr();
    const Csr csr = copy_to(stream, here.view());
    const Csr back = transposed(csr.view(), stream);
    const Tensor t = there(problem.target, stream), s = there(problem.source, stream),
                 e = there(problem.entry, stream), g = copy_to(stream, problem.grad);
    const EdgeScores scores{view_of(t), view_of(s), view_of(e), problem.negative_slope};
    const Tensor made = edge_softmax(csr.view(), scores);
    const EdgeScoreGradients gradients =
        edge_softmax_gradient(csr.view(), back.view(), scores, made, g);
    output = copy_to_host(made, stream);
    if (gradients.target.defined()) target = copy_to_host(gradients.target, stream);
    if (gradients.source.defined()) source = copy_to_host(gradients.source, stream);
    if (gradients.entry.defined()) entry = copy_to_host(gradients.entry, stream);
  }

 private:
  static Tensor there(const Tensor& tensor, const Stream& stream) {
    return tensor.defined() ? copy_to(stream, tensor) : Tensor();
  }
  static ConstTensorView view_of(const Tensor& tensor) {
    return tensor.defined() ? tensor.view() : ConstTensorView();
  }
};

void check(const AttentionProblem& problem, double tolerance, const Stream& stream) {
  SCOPED_TRACE(problem.one.name + ", " + std::to_string(problem.heads) + " heads");
  const Results got(problem, stream);
  expect_all_near(got.output, problem.share, tolerance, "shares");
  if (got.target.defined())
    expect_all_near(got.target, problem.of_target, 16 * tolerance, "gradient of targets");
  if (got.source.defined())
    expect_all_near(got.source, problem.of_source, 16 * tolerance, "gradient of sources");
  if (got.entry.defined())
    expect_all_near(got.entry, problem.of_entry, 8 * tolerance, "gradient of entries");
}

std::vector<PatternCase> cases() {
  std::vector<PatternCase> all = pattern_cases();
  if (on_emulator()) all.pop_back();
  return all;
}

TEST(EdgeSoftmaxGpu, is_what_its_definition_says) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const PatternCase& one : cases()) {
    for (const ScoreKind& kind : kScoreKinds) {
      check({one, DType::f32, 3, kind.target, kind.source, kind.entry, 0.2}, 1e-5, stream);
      check({one, DType::f16, 1, kind.target, kind.source, kind.entry, 0.2}, 2e-3, stream);
    }
    check({one, DType::bf16, 2, true, true, false, 1.0}, 1.6e-2, stream);
    check({one, DType::f32, 2, true, true, true, 0.0}, 1e-5, stream);
  }
}

TEST(EdgeSoftmaxGpu, an_entry_of_minus_infinity_has_no_share_at_any_slope) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const double slope : {0.0, 0.5, 1.0}) {
    const SilencedProblem problem(slope);
    const Csr here = problem.one.csr();
    const Csr csr = copy_to(stream, here.view());
    const Tensor entry = copy_to(stream, problem.entry), grad = copy_to(stream, problem.grad);
    const EdgeScores given{.entry = entry, .negative_slope = slope};
    const Tensor output = edge_softmax(csr.view(), given);
    const Tensor made = edge_softmax_gradient(csr.view(), {}, given, output, grad).entry;
    expect_all_near(copy_to_host(output, stream), problem.share, 1e-5, "shares");
    expect_all_near(copy_to_host(made, stream), problem.of_entry, 1e-5, "gradient");
  }
}

TEST(EdgeSoftmaxGpu, gives_the_same_bits_every_time) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const std::vector<PatternCase> all = cases();
  for (const PatternCase& one : all) {
    const AttentionProblem problem(one, DType::f32, 2, true, true, true, 0.2);
    const Results first(problem, stream);
    for (int again = 0; again < (on_emulator() ? 1 : 100); ++again) {
      const Results next(problem, stream);
      ASSERT_TRUE(same_bits(next.output, first.output));
      ASSERT_TRUE(same_bits(next.target, first.target));
      ASSERT_TRUE(same_bits(next.source, first.source));
    }
  }
}

}   // namespace
}   // namespace pumice::test
