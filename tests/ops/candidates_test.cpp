// Every plan that comes into question computes the same, and a plan that does not fit is refused.
// PUMICE_RANDOM_PROBLEMS and PUMICE_RANDOM_SEED say how many problems, and where they begin.
// Covers convolution and plans that are given to it.
#include <gtest/gtest.h>

#include <pumice/core/error.hpp>
#include <pumice/maps/build.hpp>

#include "ops/candidate_check.hpp"
#include "support/random_problems.hpp"

namespace pumice::test {
namespace {

constexpr std::uint64_t kSeed = 400'000;
constexpr std::uint64_t kProblems = 600;   // some 20 plans each

TEST(Candidates, agree_with_the_reference) {
  const SeedRange seeds = seeds_from_environment(kSeed, kProblems);
  CandidateCounts counts;
  int failures = 0;
  for (std::uint64_t i = 0; i < seeds.count && failures < 3; ++i) {
    const ConvolutionCase c = draw_case(seeds.first + i);
    const std::string complaint = check_candidates(c, {}, counts);
    if (complaint.empty()) continue;
    ++failures;
    ADD_FAILURE() << c << "\n  " << complaint;
  }
  if (seeds.count < kProblems) return;
  for (const char* direction : {"forward", "input_gradient"}) {
    for (const char* kind : {" gather_gemm_scatter", " fetch_on_demand", " implicit_gemm",
                             " implicit_gemm sorted", " implicit_gemm sorted splits"})
      EXPECT_GE(counts[std::string(direction) + kind], 100) << direction << kind;
  }
  EXPECT_GE(counts["weight_gradient sum_over_pairs"], 100);
}

CoordinateSetPtr some_sites() {
  Random random(3);
  return to_set(draw_sites(200, 3, 2, std::nullopt, true, random), 3, std::nullopt);
}

class GivenPlan : public testing::Test {
 protected:
  CoordinateSetPtr sites = some_sites();
  KernelMapPtr map = submanifold_map(sites, submanifold_window(3, axes(3, 3), axes(3, 1)));
  Tensor x = Tensor::full({200, 8}, DType::f32, 0.5);
  Tensor weight = Tensor::full({27, 8, 4}, DType::f32, 0.25);

  std::string refusal(const ConvolutionPlan& plan, ConvolutionOptions options = {}) const {
    options.plan = &plan;
    try {
      convolution(x, weight, map->view(), options);
    } catch (const UserError& error) {
      return error.what();
    }
    return {};
  }
};

TEST_F(GivenPlan, that_does_not_fit_is_refused_by_name) {
  const ConvolutionPlan plan{.dataflow = Dataflow::implicit_gemm, .tile_rows = 64};
  EXPECT_EQ(refusal(plan), "");
  EXPECT_EQ(
      refusal(plan, {.dataflow = Dataflow::fetch_on_demand}),
      "a plan (implicit_gemm/64) and a dataflow (fetch_on_demand) are given: a plan names its "
      "own, so leave the dataflow out");
  ConvolutionPlan other = plan;
  other.tile_rows = 0;
  EXPECT_EQ(refusal(other), "plan implicit_gemm: tile_rows = 0: give 1 to 1048576, as in 512");
  other = plan;
  other.splits = 5;
  EXPECT_EQ(refusal(other), "plan implicit_gemm/64/splits 5: splits = 5: give 1 to 4");
  other = plan;
  other.dataflow = Dataflow::sum_over_pairs;
  EXPECT_NE(refusal(other).find("sum_over_pairs is of weight gradients alone"), std::string::npos);
  other = plan;
  other.tile = TileSchedule{};
  EXPECT_NE(refusal(other).find("is one of a device, and features are on the CPU"),
            std::string::npos);
  other = {.dataflow = Dataflow::fetch_on_demand, .tile_rows = 64, .splits = 2};
  EXPECT_NE(refusal(other).find("only implicit_gemm has splits"), std::string::npos);
}

TEST_F(GivenPlan, is_the_one_that_plan_of_returns) {
  const ConvolutionPlan plan{.dataflow = Dataflow::fetch_on_demand, .tile_rows = 128};
  const ConvolutionProblem problem = convolution_problem(x, weight, map->view());
  const PlanPtr planned = plan_of(problem, map->view(), {.plan = &plan});
  EXPECT_EQ(planned.get(), &plan);
}

}   // namespace
}   // namespace pumice::test
