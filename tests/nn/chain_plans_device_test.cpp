// Links of chains that are given plans, on a CUDA device, with weights packed before.
// Covers chains on a device, and plans that are given to them.
#include "nn/chain_plans.hpp"

#include <pumice/core/stream.hpp>

#include "support/gpu.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header
using pumice::test::kGpu;
using pumice::test::on_emulator;

void check_on_device(const CaseTypes& types, const Tolerance& values, const Tolerance& gradients) {
  const Stream stream(kGpu);
  const ChainProblem problem(chain_cases()[2], on_emulator() ? 33 : 2000);
  check_every_plan(problem, {.types = types,
                             .stream = stream,
                             .of_values = values,
                             .of_gradients = gradients,
                             .one_of_each_kind = on_emulator()});
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
