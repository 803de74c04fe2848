// Chains on a CUDA device beside their operators one by one in float64 on the CPU.
// Covers chains on a device.
#include <gtest/gtest.h>

#include <pumice/core/cuda.hpp>
#include <pumice/core/stream.hpp>

#include "nn/chain_case.hpp"
#include "support/gpu.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header
using pumice::test::kGpu;
using pumice::test::on_emulator;

/// A norm stretches what little a channel varies, hence 2e-3 in f32. In half precision a value that
/// is nearly 0 may fall on the other side of a ReLU, and then all of one element's gradient is
/// there or is not: gradients are compared by their norm, in which one of thousands hardly counts.
struct Kind {
  CaseTypes types;
  Tolerance of_values;
  Tolerance of_gradients;
};

const Kind kKinds[] = {
    {{DType::f32, DType::f32, DType::f32}, {.largest = 2e-3}, {.largest = 2e-3}},
    {{DType::f16, DType::f32, DType::f32}, {.largest = 0.1, .norm = 0.02}, {.norm = 0.05}},
    {{DType::f16, DType::f16, DType::f16}, {.largest = 0.1, .norm = 0.02}, {.norm = 0.05}}};

/// On the emulator, where each kernel takes a second to compile, those that say most.
std::vector<ChainCase> cases_here() {
  const std::vector<ChainCase> all = all_cases();
  if (!on_emulator()) return all;
  return {all[4], all[6], all[8], joined_cases()[0], joined_cases()[5]};
}

std::int64_t rows_here() {
  return on_emulator() ? 33 : 2000;
}

/// Twice, the second time without saying ahead that the features learn.
void check_training(const ChainProblem& problem, const Kind& kind, StreamView stream) {
  OneByOne expected(problem);
  const Tensor output = expected.train();
  const Gradients wanted = expected.gradients();
  Chain chain = problem.chain();
  const bool has_other = problem.other.defined();
  for (int pass = 0; pass < 2; ++pass) {
    SCOPED_TRACE("pass " + std::to_string(pass));
    OnStream there(problem, kind.types, stream);   // other maps
    const auto parameters = there.parameters();
    ChainInput input = there.input();
    input.features_learn = pass == 0;
    const ChainTrained got = chain.train(input, parameters, there.running());
    expect_close(got.output, output, kind.of_values, "output");
    for (std::size_t i = 0; i < there.owned.size(); ++i) {
      expect_close(there.owned[i].mean, expected.running_mean(i), kind.of_values, "running mean");
      expect_close(there.owned[i].variance, expected.running_variance(i), kind.of_values,
                   "running variance");
      EXPECT_EQ(on_host(there.owned[i].batches).span<std::int64_t>()[0], 1);
    }
    const ChainGradients gradients = chain.gradients(
        {there.grad_output, got.output, true, has_other}, there.input(), parameters, *got.record);
    expect_close(gradients.features, wanted.features, kind.of_gradients, "features");
    if (has_other) expect_close(gradients.other, wanted.other, kind.of_gradients, "other");
    for (std::size_t i = 0; i < wanted.parameters.size(); ++i) {
      const Lies lies = i % 3 == 0 ? problem.chain_case.links[i / 3].lies : Lies::plain;
      expect_close(gradients.parameters[i], laid(wanted.parameters[i], lies), kind.of_gradients,
                   "parameter " + std::to_string(i));
    }
  }
}

TEST(ChainGpu, TrainsAsItsOperatorsDo) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const ChainCase& one : cases_here()) {
    SCOPED_TRACE(one.name);
    const ChainProblem problem(one, rows_here());
    for (const Kind& kind : kKinds) {
      const bool is_half = kind.types.features == DType::f16;
      // Links one after the other make percents of what half precision leaves out.
      if (is_half && one.links.size() > 2) continue;
      SCOPED_TRACE(name_of(kind.types.features));
      check_training(problem, kind, stream);
    }
  }
}

TEST(ChainGpu, InfersWithWeightsThatArePackedOnce) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const ChainCase& one : cases_here()) {
    SCOPED_TRACE(one.name);
    for (const std::int64_t rows : {std::int64_t{0}, std::int64_t{1}, rows_here()}) {
      if (rows < 2 && one.links.size() != 2) continue;
      ChainProblem problem(one, rows);
      OnStream there(problem, kKinds[0].types, stream);
      Chain chain = problem.chain();
      ChainWeights weights(chain, there.parameters(), there.running());
      const Tensor expected = OneByOne(problem).infer();
      for (int pass = 0; pass < 3; ++pass)
        expect_close(chain.infer(there.input(), weights), expected, kKinds[0].of_values, "output");
      // Who changes a weight makes others of it.
      fill_async(there.owned[0].weight.view(), 0.25, stream);
      fill_async(problem.parameters[0].weight.view(), 0.25, {});
      ChainWeights changed(chain, there.parameters(), there.running());
      expect_close(chain.infer(there.input(), changed), OneByOne(problem).infer(),
                   kKinds[0].of_values, "output of another weight");
    }
  }
}

}   // namespace
}   // namespace pumice::nn
