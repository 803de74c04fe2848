// Chains whose links are given plans, for the CPU and for a device: what ran, and what came out.
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/ops/plan_record.hpp>

#include "nn/chain_case.hpp"

namespace pumice::nn::test {

/// How a chain with plans is checked.
struct PlanCheck {
  CaseTypes types{};
  StreamView stream{};
  Tolerance of_values{};
  Tolerance of_gradients{};
  /// On the emulator, where each kernel takes a second to compile and there is no cuBLAS, one plan
  /// of each kind is run.
  bool one_of_each_kind = false;
};

inline std::vector<PlanPtr> plans_of(const ConvolutionProblem& problem, const PlanCheck& how) {
  std::vector<PlanPtr> plans;
  std::set<std::string> kinds;
  for (const Candidate& one : candidates(problem, target_of(how.stream.device))) {
    ConvolutionPlan kind = one.plan;
    kind.tile.reset();
    kind.gradient.reset();
    kind.splits = std::min(kind.splits, 2);
    const bool is_new = kinds.insert(kind.name()).second;
    const bool has_kernel = kind.dataflow != Dataflow::gather_gemm_scatter;
    if (how.one_of_each_kind && !(is_new && has_kernel)) continue;
    plans.push_back(std::make_shared<const ConvolutionPlan>(one.plan));
  }
  return plans;
}

/// All that may run the three directions of a link.
struct LinkCandidates {
  std::vector<PlanPtr> forward, input_gradient, weight_gradient;

  std::size_t most() const {
    return std::max({forward.size(), input_gradient.size(), weight_gradient.size()});
  }
  /// A combination for each number; each plan is in one of them.
  LayerPlans at(std::size_t number) const {
    const auto one = [&](const std::vector<PlanPtr>& all, std::size_t moved) {
      return all[(number + moved) % all.size()];
    };
    return {one(forward, 0), one(input_gradient, 1), one(weight_gradient, 2)};
  }
};

inline LinkCandidates candidates_of(const ChainProblem& problem, const KernelMapView& map,
                                    std::size_t link, const PlanCheck& how) {
  const Shape weight = problem.parameters[link].weight.shape();
  const auto view = [&](std::int64_t rows, std::int64_t channels) {
    return ConstTensorView(nullptr, how.types.features, {rows, channels}, how.stream);
  };
  const ConstTensorView x = view(map.in_rows, weight[1]);
  const ConstTensorView y = view(map.out_rows, weight[2]);
  const ConstTensorView w(nullptr, how.types.features, weight, how.stream);
  return {plans_of(convolution_problem(x, w, map), how),
          plans_of(convolution_input_gradient_problem(y, w, map), how),
          plans_of(convolution_weight_gradient_problem(x, y, map), how)};
}

/// A link without a plan runs what is chosen, whatever the others have.
inline void expect_ran(const std::vector<RanPlan>& ran, std::size_t at, Direction direction,
                       const PlanPtr& given) {
  ASSERT_LT(at, ran.size());
  EXPECT_EQ(ran[at].direction, direction);
  if (given != nullptr) {
    EXPECT_TRUE(ran[at].plan->runs_like(*given))
        << name_of(direction) << " ran " << ran[at].plan->name() << ", not " << given->name();
  }
}

inline Chain chain_with(const ChainProblem& problem, const std::vector<LayerPlans>& plans) {
  std::vector<ChainLink> links = problem.chain().links();
  for (std::size_t i = 0; i < links.size(); ++i)
    links[i].plans = plans[i];
  return Chain(std::move(links));
}

/// Twice, with other maps.
inline void check_training_with(const ChainProblem& problem, const std::vector<LayerPlans>& plans,
                                const PlanCheck& how) {
  OneByOne expected(problem);
  const Tensor output = expected.train();
  const Gradients wanted = expected.gradients();
  Chain chain = chain_with(problem, plans);
  const std::size_t links = chain.size();
  for (int pass = 0; pass < 2; ++pass) {
    SCOPED_TRACE("pass " + std::to_string(pass));
    OnStream there(problem, how.types, how.stream);
    const auto parameters = there.parameters();
    PlanRecord record;
    const ChainTrained got = chain.train(there.input(), parameters, there.running());
    std::vector<RanPlan> ran = record.take();
    ASSERT_EQ(ran.size(), links);
    for (std::size_t i = 0; i < links; ++i)
      expect_ran(ran, i, Direction::forward, plans[i].forward);
    const ChainGradients gradients = chain.gradients({there.grad_output, got.output, true, false},
                                                     there.input(), parameters, *got.record);
    ran = record.take();
    ASSERT_EQ(ran.size(), 2 * links);
    for (std::size_t i = 0; i < links; ++i) {
      const std::size_t from_last = 2 * (links - 1 - i);
      expect_ran(ran, from_last, Direction::weight_gradient, plans[i].weight_gradient);
      expect_ran(ran, from_last + 1, Direction::input_gradient, plans[i].input_gradient);
    }
    expect_close(got.output, output, how.of_values, "output");
    expect_close(gradients.features, wanted.features, how.of_gradients, "features");
    for (std::size_t i = 0; i < wanted.parameters.size(); ++i)
      expect_close(gradients.parameters[i], wanted.parameters[i], how.of_gradients,
                   "parameter " + std::to_string(i));
  }
}

/// Twice with the same weights, which are packed the first time.
inline void check_inference_with(const ChainProblem& problem, const std::vector<LayerPlans>& plans,
                                 const PlanCheck& how) {
  OnStream there(problem, how.types, how.stream);
  Chain chain = chain_with(problem, plans);
  ChainWeights weights(chain, there.parameters(), there.running());
  const Tensor expected = OneByOne(problem).infer();
  for (int pass = 0; pass < 2; ++pass) {
    PlanRecord record;
    const Tensor got = chain.infer(there.input(), weights);
    const std::vector<RanPlan> ran = record.take();
    ASSERT_EQ(ran.size(), plans.size());
    for (std::size_t i = 0; i < plans.size(); ++i)
      expect_ran(ran, i, Direction::forward, plans[i].forward);
    expect_close(got, expected, how.of_values, "inferred");
  }
}

/// Every candidate of every link, in training and in evaluation; in every third chain the last link
/// has no plan.
inline void check_every_plan(const ChainProblem& problem, const PlanCheck& how) {
  const OnStream there(problem, how.types, how.stream);
  std::vector<LinkCandidates> all;
  std::size_t most = 0;
  for (std::size_t i = 0; i < problem.parameters.size(); ++i) {
    all.push_back(candidates_of(problem, there.views[i], i, how));
    most = std::max(most, all.back().most());
  }
  EXPECT_GT(most, 1u);
  for (std::size_t number = 0; number < most; ++number) {
    std::vector<LayerPlans> plans;
    for (const LinkCandidates& of_link : all)
      plans.push_back(of_link.at(number));
    if (number % 3 == 2) plans.back() = {};
    SCOPED_TRACE(to_text(plans.front()));
    check_training_with(problem, plans, how);
    check_inference_with(problem, plans, how);
  }
}

}   // namespace pumice::nn::test
