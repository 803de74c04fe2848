// Links of chains that are given plans, on a CUDA device, with weights packed before.
// Covers chains on a device, and plans that are given to them.
#include "nn/chain_plans.hpp"

#include <set>

#include <pumice/core/stream.hpp>

#include "support/gpu.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header
using pumice::test::kGpu;
using pumice::test::on_emulator;

/// On the emulator, where each kernel takes a second to compile and there is no cuBLAS, one plan of
/// each kind.
std::function<bool(const Candidate&)> those_here() {
  if (!on_emulator()) return [](const Candidate&) { return true; };
  auto known = std::make_shared<std::set<std::string>>();
  return [known](const Candidate& one) {
    const ConvolutionPlan& plan = one.plan;
    if (plan.dataflow == Dataflow::gather_gemm_scatter) return false;
    ConvolutionPlan kind = plan;
    kind.tile.reset();
    kind.gradient.reset();
    kind.splits = std::min(plan.splits, 2);
    return known->insert(kind.name()).second || plan.dataflow == Dataflow::sum_over_pairs;
  };
}

void check_on_device(const CaseTypes& types, const Tolerance& values, const Tolerance& gradients) {
  const Stream stream(kGpu);
  const ChainProblem problem(chain_cases()[2], on_emulator() ? 33 : 2000);
  check_every_plan(problem, {.types = types,
                             .stream = stream,
                             .of_values = values,
                             .of_gradients = gradients,
                             .takes = those_here()});
}

TEST(ChainPlansGpu, run_as_given_in_f32) {
  PUMICE_NEEDS_GPU();
  check_on_device({DType::f32, DType::f32, DType::f32}, {.largest = 2e-3}, {.largest = 2e-3});
}

/// Weights in f32 are rounded where they are packed, or before where a plan takes no such.
TEST(ChainPlansGpu, run_as_given_with_wide_weights) {
  PUMICE_NEEDS_GPU();
  check_on_device({DType::f16, DType::f32, DType::f32}, {.largest = 0.1, .norm = 0.02},
                  {.norm = 0.05});
}

}   // namespace
}   // namespace pumice::nn
