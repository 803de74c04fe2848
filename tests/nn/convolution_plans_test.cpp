// Convolution layers that are given plans, forward and backward.
// Covers convolution.
#include <gtest/gtest.h>

#include <pumice/nn/convolution.hpp>
#include <pumice/nn/initialize.hpp>
#include <pumice/nn/tape.hpp>
#include <pumice/ops/convolution.hpp>
#include <pumice/ops/plan_record.hpp>

#include "nn/scenes.hpp"
#include "support/message_of.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header
using pumice::test::message_of;

struct Pass {
  Tensor y, of_x, of_weight;
  std::vector<RanPlan> ran;
};

Pass run(Convolution& layer, SparseTensor x) {
  layer.clear_gradients();
  x.node = std::make_shared<Node>();
  Context context{.record = true};
  PlanRecord record;
  const SparseTensor y = layer.forward(x, context);
  backward(y.node, random_tensor(y.features.shape(), y.features.dtype(), 9));
  return {y.features, x.node->gradient(), layer.weight()->gradient(), record.take()};
}

std::vector<Candidate> candidates_of(const ConvolutionProblem& problem) {
  return candidates(problem, target_of(Device{}));
}

TEST(ConvolutionPlans, run_forward_and_backward) {
  const SparseTensor x = make_input(make_scene(), 4, DType::f64);
  Convolution layer(submanifold(4, 8));
  initialize(layer, 1);
  layer.to(DType::f64);
  const Pass chosen = run(layer, x);
  const KernelMapPtr map = x.maps->submanifold(x.coordinates, layer.spec().window);
  const Tensor weight = layer.weight()->value();
  const auto forward = candidates_of(convolution_problem(x.features, weight, map->view()));
  const auto back =
      candidates_of(convolution_input_gradient_problem(chosen.y, weight, map->view()));
  const auto sums =
      candidates_of(convolution_weight_gradient_problem(x.features, chosen.y, map->view()));
  ASSERT_EQ(forward.size(), back.size());
  ASSERT_GT(forward.size(), 3u);
  for (std::size_t i = 0; i < forward.size(); ++i) {
    const LayerPlans plans{
        .forward = std::make_shared<const ConvolutionPlan>(forward[i].plan),
        .input_gradient = std::make_shared<const ConvolutionPlan>(back[back.size() - 1 - i].plan),
        .weight_gradient = std::make_shared<const ConvolutionPlan>(sums.front().plan)};
    SCOPED_TRACE(to_text(plans));
    layer.set_plans(plans);
    EXPECT_TRUE(layer.plans().run_like(plans));
    const Pass given = run(layer, x);
    ASSERT_EQ(given.ran.size(), 3u);
    for (const RanPlan& ran : given.ran)
      EXPECT_TRUE(ran.plan->runs_like(*plans.of(ran.direction))) << ran.plan->name();
    EXPECT_LT(relative_difference(given.y, chosen.y), 1e-12);
    EXPECT_LT(relative_difference(given.of_x, chosen.of_x), 1e-12);
    EXPECT_LT(relative_difference(given.of_weight, chosen.of_weight), 1e-12);
  }
}

TEST(ConvolutionPlans, go_with_no_dataflow_of_the_context) {
  const SparseTensor x = make_input(make_scene(), 4);
  Convolution layer(submanifold(4, 8));
  initialize(layer, 1);
  layer.set_plans({.forward = std::make_shared<const ConvolutionPlan>(
                       ConvolutionPlan{.dataflow = Dataflow::fetch_on_demand, .tile_rows = 64})});
  Context context{.dataflow = Dataflow::implicit_gemm};
  EXPECT_EQ(message_of([&] { layer.forward(x, context); }),
            "a plan (fetch_on_demand/64) and a dataflow (implicit_gemm) are given: a plan names "
            "its own, so leave the dataflow out");
  layer.set_plans({});
  EXPECT_NO_THROW(layer.forward(x, context));
}

}   // namespace
}   // namespace pumice::nn
