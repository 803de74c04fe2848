// What a chain makes ahead is all that its links run on.
// Covers chain/needs and ops/cuda/convolution_needs.
#include "nn/chain/needs.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/stream.hpp>

#include "formats/cuda/map_formats.hpp"
#include "kernels/cuda/packed_tiles.hpp"
#include "nn/chain/learned.hpp"
#include "nn/chain_case.hpp"
#include "support/gpu.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace)
using pumice::test::kGpu;
using pumice::test::on_emulator;

const CaseTypes kF32{DType::f32, DType::f32, DType::f32};

std::vector<ChainCase> cases_here() {
  const std::vector<ChainCase> all = chain_cases();
  if (!on_emulator()) return all;   // each kernel takes a second to compile there
  return {all[1], all[4], all[7]};
}

/// Links over single points alone multiply rows as they lie.
bool cuts_anything(const ChainCase& one) {
  return std::ranges::any_of(one.links,
                             [](const CaseLink& link) { return link.over != Over::point; });
}

/// Tiles that somebody has used, of each different map.
std::vector<std::vector<cuda::MapFormats::Asked>> asked_of(const ChainInput& input) {
  std::vector<std::vector<cuda::MapFormats::Asked>> result;
  for (const KernelMapView& map : input.maps)
    result.push_back(cuda::MapFormats::of(*map.map).asked());
  return result;
}

bool has_all(const ChainInput& input,
             const std::vector<std::vector<cuda::MapFormats::Asked>>& asked, bool pairs) {
  for (std::size_t i = 0; i < input.maps.size(); ++i) {
    cuda::MapFormats::Wanted wanted;
    wanted.pairs = pairs;
    for (const cuda::MapFormats::Asked& one : asked[i])
      wanted.add(one.wanted);
    if (!cuda::MapFormats::of(*input.maps[i].map).missing(wanted).empty()) return false;
  }
  return true;
}

/// Other maps of the same sites, of which nothing has been cut, and weights that are not packed.
struct Ahead {
  Ahead(const ChainProblem& problem, const Chain& chain, const Stream& stream)
      : there(problem, kF32, stream),
        input(there.input()),
        parameters(there.parameters()),
        learned(parameters, chain.size()),
        turned(learned.turn()) {}

  OnStream there;
  ChainInput input;
  std::vector<LinkParameters> parameters;
  Learned learned;
  Tensor turned;
};

TEST(ChainNeedsGpu, are_the_cuts_that_a_training_step_uses) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  std::vector<ChainCase> cases = cases_here();
  cases.push_back(joined_cases()[3]);   // whose kernels read two values
  for (const ChainCase& one : cases) {
    SCOPED_TRACE(one.name);
    const ChainProblem problem(one, on_emulator() ? 33 : 2000);
    const Chain chain = problem.chain();
    OnStream step(problem, kF32, stream);
    const auto parameters = step.parameters();
    const ChainTrained got = chain.train(step.input(), parameters, step.running());
    chain.gradients({step.grad_output, got.output, true, problem.other.defined()}, step.input(),
                    parameters, *got.record);
    const auto asked = asked_of(step.input());

    Ahead ahead(problem, chain, stream);
    EXPECT_EQ(has_all(ahead.input, asked, true), !cuts_anything(one));
    const Fusions fusions(chain, ahead.input, ahead.learned.weights(), Shortcuts::by_themselves);
    std::vector<PackedWeights> packed(chain.size());
    ChainNeeds needs(chain, ahead.input, ahead.learned.weights());
    for (std::size_t i = 0; i < chain.size(); ++i) {
      needs.forward(i, fusions, {}, packed);
      needs.input_gradient(i);
      needs.weight_gradient(i);
    }
    needs.make();
    EXPECT_TRUE(has_all(ahead.input, asked, true));
  }
}

TEST(ChainNeedsGpu, of_inference_are_tiles_and_weights_and_no_pairs) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const ChainCase& one : cases_here()) {
    SCOPED_TRACE(one.name);
    const ChainProblem problem(one, on_emulator() ? 33 : 2000);
    const Chain chain = problem.chain();
    OnStream pass(problem, kF32, stream);
    ChainWeights weights(chain, pass.parameters(), pass.running());
    chain.infer(pass.input(), weights);
    const auto asked = asked_of(pass.input());

    Ahead ahead(problem, chain, stream);
    const ChainInput& input = ahead.input;
    const Learned& learned = ahead.learned;
    std::vector<PackedWeights> packed(chain.size());
    ChainNeeds needs(chain, input, learned.weights());
    for (std::size_t i = 0; i < chain.size(); ++i)
      needs.forward(i, &packed[i]);
    needs.make();
    EXPECT_TRUE(has_all(input, asked, false));
    EXPECT_EQ(has_all(input, asked, true), !cuts_anything(one));
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const ConvolutionProblem of_link = convolution_problem(
          ConstTensorView(nullptr, DType::f32, {input.maps[i].in_rows, learned.weight(i).extent(1)},
                          stream.view()),
          learned.weight(i), input.maps[i]);
      const auto use = cuda::packing_of(of_link, *plan_of(of_link, input.maps[i]));
      ASSERT_TRUE(use);
      jit::DeviceRunner runner(stream.view(), default_allocator(kGpu));
      EXPECT_FALSE(packed[i].tiles().make_room(runner, *use, learned.weight(i))) << "it is there";
    }
  }
}

TEST(ChainNeedsGpu, of_a_type_without_kernels_are_refused) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const ChainProblem problem(chain_cases()[4], 33);
  const Chain chain = problem.chain();
  OnStream there(problem, {}, stream);   // f64
  const auto parameters = there.parameters();
  const std::string said =
      message_of([&] { chain.train(there.input(), parameters, there.running()); });
  EXPECT_NE(said.find("f64"), std::string::npos) << said;
}

TEST(ChainNeeds, are_none_on_the_cpu) {
  const ChainProblem problem(chain_cases()[4], 33);
  const Chain chain = problem.chain();
  const OnStream here(problem, {}, {});
  const ChainInput input = here.input();
  const auto given = here.parameters();
  Learned learned(given, chain.size());
  ChainNeeds needs(chain, input, learned.weights());
  EXPECT_NO_THROW({
    needs.forward(0);
    needs.input_gradient(0);
    needs.weight_gradient(0);
    needs.make();   // nothing to enqueue, and nowhere
  });
}

}   // namespace
}   // namespace pumice::nn
