// Chains on a device, where kernels read two values, and in evaluation a shortcut, beside their
// input: what runs, and that numbers stay those of link by link.
// Covers chain/fusions and chain/structure.
#include "nn/chain/fusions.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include <pumice/core/stream.hpp>
#include <pumice/ops/plan_record.hpp>

#include "nn/chain_case.hpp"
#include "support/gpu.hpp"
#include "support/watched_launches.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header
using pumice::test::kGpu;
using pumice::test::on_emulator;
using pumice::test::WatchedLaunches;

std::int64_t rows_here() {
  return on_emulator() ? 33 : 2000;
}

const ChainCase kOfTensors = joined_cases()[2];   // 4 + 4 channels
const ChainCase kOfMade = joined_cases()[3];      // 8 + 8

/// What ran, as words: "2 inputs" where one kernel reads several.
struct Ran {
  std::size_t products = 0;
  std::size_t of_several = 0;
  std::size_t launches = 0;   // of the second pass, when all is packed and cut

  friend bool operator==(const Ran&, const Ran&) = default;
};

Ran ran_since(PlanRecord& record, WatchedLaunches& watched) {
  Ran ran;
  ran.launches = watched.take().size();
  for (const RanPlan& one : record.take()) {
    ++ran.products;
    if (one.plan->fuses_inputs) ++ran.of_several;
  }
  return ran;
}

struct Pass {
  Tensor output;
  Ran ran;
};

Pass infer(const ChainProblem& problem, const Chain& chain, const CaseTypes& types,
           StreamView stream) {
  OnStream there(problem, types, stream);
  ChainWeights weights(chain, there.parameters(), there.running());
  chain.infer(there.input(), weights);
  PlanRecord record;
  WatchedLaunches watched;
  Pass pass{.output = chain.infer(there.input(), weights), .ran = {}};
  pass.ran = ran_since(record, watched);
  return pass;
}

/// A training step, and what ran in its forward pass, the second one with these sites.
struct Step {
  Tensor output;
  ChainGradients gradients;
  Ran ran;
};

Step train(const ChainProblem& problem, const Chain& chain, const CaseTypes& types,
           StreamView stream) {
  OnStream there(problem, types, stream);
  const std::vector<LinkParameters> parameters = there.parameters();
  chain.train(there.input(), parameters, there.running());
  Step step;
  PlanRecord record;
  WatchedLaunches watched;
  const ChainTrained trained = chain.train(there.input(), parameters, there.running());
  step.ran = ran_since(record, watched);
  step.output = trained.output;
  step.gradients =
      chain.gradients({there.grad_output, trained.output, true, problem.other.defined()},
                      there.input(), parameters, *trained.record);
  return step;
}

/// Steps whose values are rounded at the same places: their sums are in another order at most.
void expect_same_numbers(const Step& step, const Step& other) {
  const auto expect_same = [](const Tensor& one, const Tensor& another, const std::string& what) {
    expect_close(one, on_host(another), Tolerance{.norm = 0.02}, what);
  };
  expect_same(step.output, other.output, "output");
  expect_same(step.gradients.features, other.gradients.features, "features");
  ASSERT_EQ(step.gradients.parameters.size(), other.gradients.parameters.size());
  for (std::size_t i = 0; i < step.gradients.parameters.size(); ++i)
    expect_same(step.gradients.parameters[i], other.gradients.parameters[i],
                "parameter " + std::to_string(i));
}

/// Each link by itself, with the plan that the rules choose for it alone.
Chain link_by_link(const ChainProblem& problem, const CaseTypes& types, StreamView stream) {
  OnStream there(problem, types, stream);
  std::vector<ChainLink> links = problem.chain().links();
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Shape shape = problem.parameters[i].weight.shape();
    const KernelMapView& map = there.views[i];
    const auto view = [&](const Shape& of) {
      return ConstTensorView(nullptr, types.features, of, stream);
    };
    links[i].plans.forward =
        plan_of(convolution_problem(view({map.in_rows, shape[1]}), view(shape), map), map);
  }
  return Chain(std::move(links));
}

/// A rounding of every value on the way to the storage type, which norms stretch.
Tolerance tolerance(DType type) {
  if (type == DType::f32) return {.largest = 2e-3};
  return type == DType::f16 ? Tolerance{.largest = 0.1, .norm = 0.02} : Tolerance{.norm = 0.1};
}

TEST(ChainFusionsGpu, give_the_numbers_of_link_by_link) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const ChainCase& one : joined_cases()) {
    const bool says_most = one.name == kOfMade.name || one.name == joined_cases()[5].name;
    if (on_emulator() && !says_most) continue;
    for (const std::int64_t rows : {std::int64_t{0}, std::int64_t{1}, rows_here()}) {
      if (rows < 2 && one.name != kOfMade.name) continue;
      const ChainProblem problem(one, rows);
      const Tensor expected = OneByOne(problem).infer();
      for (const CaseTypes& types : {CaseTypes{DType::f32, DType::f32, DType::f32},
                                     CaseTypes{DType::f16, DType::f32, DType::f32},
                                     CaseTypes{DType::bf16, DType::bf16, DType::bf16}}) {
        SCOPED_TRACE(one.name + ", " + std::to_string(rows) + " rows, " +
                     std::string(name_of(types.features)));
        const Pass fused = infer(problem, problem.chain(), types, stream);
        const Pass apart = infer(problem, link_by_link(problem, types, stream), types, stream);
        expect_close(fused.output, expected, tolerance(types.features), "fused");
        expect_close(apart.output, expected, tolerance(types.features), "link by link");
        EXPECT_LE(fused.ran.products, apart.ran.products);
        EXPECT_EQ(apart.ran.of_several, 0u);
      }
    }
  }
}

TEST(ChainFusionsGpu, of_a_block_of_two_values_leave_a_launch_for_each_convolution) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const ChainProblem problem(kOfMade, rows_here());
  const CaseTypes halves{DType::f16, DType::f16, DType::f32};
  EXPECT_EQ(infer(problem, problem.chain(), halves, stream).ran,
            (Ran{.products = 4, .of_several = 2, .launches = 4}));
  // The two values are brought together once, for both that take them.
  EXPECT_EQ(infer(problem, link_by_link(problem, halves, stream), halves, stream).ran,
            (Ran{.products = 5, .of_several = 0, .launches = 6}));
  // In f32 the plans of two links split their offsets, which takes a launch more each.
  const CaseTypes singles{DType::f32, DType::f32, DType::f32};
  const Ran split = infer(problem, problem.chain(), singles, stream).ran;
  EXPECT_EQ(split.products, 4u);
  EXPECT_EQ(split.of_several, 2u);
}

/// Rows of 4 + 4 channels: 16 bytes each in f32; in f16 eight, and 16 only side by side.
TEST(ChainFusionsGpu, read_apart_what_is_of_whole_pieces) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const ChainProblem problem(kOfTensors, rows_here());
  const auto ran = [&](DType type) {
    return infer(problem, problem.chain(), {type, type, DType::f32}, stream).ran;
  };
  EXPECT_EQ(ran(DType::f32), (Ran{.products = 2, .of_several = 2, .launches = 2}));
  EXPECT_EQ(ran(DType::f16), (Ran{.products = 2, .of_several = 1, .launches = 3}));
}

/// Shortcuts have norms of their own in training, so that all links run.
TEST(ChainFusionsGpu, in_training_read_two_values_where_they_lie) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const ChainProblem problem(kOfMade, rows_here());
  const CaseTypes halves{DType::f16, DType::f32, DType::f32};
  const Step fused = train(problem, problem.chain(), halves, stream);
  const Step apart = train(problem, link_by_link(problem, halves, stream), halves, stream);
  EXPECT_EQ(fused.ran.products, 5u);
  EXPECT_EQ(fused.ran.of_several, 2u);
  EXPECT_EQ(apart.ran.products, 5u);
  EXPECT_EQ(apart.ran.of_several, 0u);
  EXPECT_EQ(fused.ran.launches + 1, apart.ran.launches) << "they are brought together once";
  expect_same_numbers(fused, apart);
}

TEST(ChainFusionsGpu, in_training_bring_together_what_is_of_half_pieces) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const ChainProblem problem(kOfTensors, rows_here());
  const CaseTypes halves{DType::f16, DType::f16, DType::f32};
  const Ran together = train(problem, problem.chain(), halves, stream).ran;
  EXPECT_EQ(together.products, 3u);
  EXPECT_EQ(together.of_several, 0u);
  EXPECT_EQ(together, train(problem, link_by_link(problem, halves, stream), halves, stream).ran);
}

TEST(ChainFusionsGpu, follow_the_plans_of_links) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const ChainProblem problem(kOfTensors, rows_here());
  const CaseTypes f32{DType::f32, DType::f32, DType::f32};
  const std::vector<ChainLink> alone = link_by_link(problem, f32, stream).links();
  const auto with = [&](std::vector<std::size_t> planned) {
    std::vector<ChainLink> links = problem.chain().links();
    for (const std::size_t i : planned)
      links[i].plans = alone[i].plans;
    const Pass pass = infer(problem, Chain(std::move(links)), f32, stream);
    expect_close(pass.output, OneByOne(problem).infer(), tolerance(DType::f32), "output");
    return std::pair(pass.ran.products, pass.ran.of_several);
  };
  using Pair = std::pair<std::size_t, std::size_t>;
  EXPECT_EQ(with({}), Pair(2, 2));
  EXPECT_EQ(with({0}), Pair(3, 0));   // its plan reads one tensor, so that both take the join
  EXPECT_EQ(with({1}), Pair(2, 1));   // a join, and the shortcut of it
  EXPECT_EQ(with({2}), Pair(3, 2));   // the shortcut by itself
  EXPECT_EQ(with({0, 1, 2}), Pair(3, 0));

  // A plan that fuses is run as given.
  OnStream there(problem, f32, stream);
  ChainWeights weights(problem.chain(), there.parameters(), there.running());
  PlanRecord record;
  problem.chain().infer(there.input(), weights);
  const std::vector<RanPlan> chosen = record.take();
  ASSERT_EQ(chosen.size(), 2u);
  std::vector<ChainLink> links = problem.chain().links();
  links[1].plans.forward = chosen[0].plan;
  links[2].plans.forward = chosen[1].plan;
  EXPECT_EQ(infer(problem, Chain(std::move(links)), f32, stream).ran.of_several, 2u);
}

/// A result that others take too, one with a ReLU, and one of several offsets are links by
/// themselves.
TEST(ChainFusionsGpu, take_no_other_residual_for_a_shortcut) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const auto products = [&](std::vector<CaseLink> links) {
    const ChainProblem problem({"", std::move(links)}, rows_here());
    const Pass pass = infer(problem, problem.chain(), {DType::f32, DType::f32, DType::f32}, stream);
    expect_close(pass.output, OneByOne(problem).infer(), tolerance(DType::f32), "output");
    return pass.ran.products;
  };
  const auto point = Over::point, cube = Over::cube;
  EXPECT_EQ(products({{0, {}, false, point, 8}, {0, 2, true, cube, 8}}), 1u);
  EXPECT_EQ(products({{0, {}, true, point, 8}, {0, 2, true, cube, 8}}), 2u);
  EXPECT_EQ(products({{0, {}, false, cube, 8}, {0, 2, true, cube, 8}}), 2u);
  EXPECT_EQ(products({{0, 0, false, point, 4}, {0, 2, true, cube, 4}}), 2u);
  EXPECT_EQ(products({{0, {}, false, point, 8}, {2, 2, true, cube, 8}}), 2u);
  EXPECT_EQ(products({{0, {}, false, point, 8}, {0, 2, true, cube, 8}, {3, 2, true, cube, 8}}), 3u);
}

TEST(ChainFusions, are_none_on_the_cpu) {
  const ChainProblem problem(kOfMade, 33);
  const Chain chain = problem.chain();
  const OnStream here(problem, {}, {});
  const ChainInput input = here.input();
  std::vector<ConstTensorView> weights;
  for (const CaseParameters& one : problem.parameters)
    weights.push_back(one.weight);
  const Fusions fusions(chain, input, weights, Shortcuts::in_links_that_add_them);
  for (std::size_t i = 0; i < chain.size(); ++i) {
    EXPECT_FALSE(fusions.shortcut_of(i));
    EXPECT_FALSE(fusions.runs_in_another(i));
    EXPECT_FALSE(fusions.is_apart(chain.structure().sources[i]));
  }
}

}   // namespace
}   // namespace pumice::nn
