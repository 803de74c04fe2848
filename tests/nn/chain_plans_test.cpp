// Links of chains that are given plans: exactly these run, and numbers stay the same.
// Covers chains.
#include "nn/chain_plans.hpp"

#include "support/message_of.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header
using pumice::test::message_of;

const ChainCase kBlock = chain_cases()[2];   // two links that add what they were given

TEST(ChainPlans, run_as_given_and_change_no_numbers) {
  const ChainProblem problem(kBlock, 33);
  check_every_plan(problem, {.of_values = {.largest = 1e-10}, .of_gradients = {.largest = 1e-10}});
}

TEST(ChainPlans, run_as_given_in_half_precision) {
  const ChainProblem problem(kBlock, 33);
  for (const DType type : {DType::f16, DType::bf16}) {
    SCOPED_TRACE(name_of(type));
    // Of 8 bits in bf16; two norms stretch what is left out.
    const double coarse = type == DType::f16 ? 1 : 8;
    check_every_plan(problem, {.types = {type, type, DType::f32},
                               .of_values = {.norm = 0.02 * coarse},
                               .of_gradients = {.norm = 0.05 * coarse}});
  }
}

TEST(ChainPlans, that_do_not_fit_are_a_sentence) {
  const ChainProblem problem(kBlock, 33);
  const auto sums = std::make_shared<const ConvolutionPlan>(
      ConvolutionPlan{.dataflow = Dataflow::sum_over_pairs});
  OnStream here(problem, {}, {});
  Chain chain = chain_with(problem, {{}, {.forward = sums}});
  const std::string said =
      message_of([&] { chain.train(here.input(), here.parameters(), here.running()); });
  EXPECT_EQ(said,
            "plan sum_over_pairs for a forward: sum_over_pairs is of weight gradients alone; give "
            "one of candidates() of this problem");
}

}   // namespace
}   // namespace pumice::nn
