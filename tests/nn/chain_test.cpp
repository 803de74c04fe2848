// Chains beside their operators one by one: outputs, all gradients, running statistics, places.
#include <pumice/nn/chain.hpp>

#include <algorithm>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include <pumice/core/allocator.hpp>

#include "nn/chain_case.hpp"
#include "support/message_of.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header
using pumice::test::message_of;
using Links = std::vector<ChainLink>;

// Sums of some hundred terms in another order, of values that a norm may have stretched.
constexpr double kClose = 1e-10;

/// Tensors that it made, to tell what is returned from what is temporary.
class Remembers final : public Results {
 public:
  Tensor make(const Shape& shape, DType dtype, StreamView stream) override {
    made.emplace_back(shape, dtype, stream);
    return made.back();
  }
  bool holds(const Tensor& tensor) const {
    return std::any_of(made.begin(), made.end(), [&](const Tensor& one) {
      return one.raw() == tensor.raw() && one.shape() == tensor.shape();
    });
  }
  std::vector<Tensor> made;
};

void check_training(const ChainProblem& problem, const CaseTypes& types, double tolerance) {
  OneByOne expected(problem);
  const Tensor output = expected.train();
  const Gradients wanted = expected.gradients();
  OnStream here(problem, types, {});
  Chain chain = problem.chain();
  const auto parameters = here.parameters();
  const ChainTrained got = chain.train(here.input(), parameters, here.running());
  expect_close(got.output, output, tolerance, "output");
  for (std::size_t i = 0; i < here.owned.size(); ++i) {
    expect_close(here.owned[i].mean, expected.running_mean(i), tolerance, "running mean");
    expect_close(here.owned[i].variance, expected.running_variance(i), tolerance, "variance");
    EXPECT_EQ(here.owned[i].batches.span<std::int64_t>()[0], problem.features.rows() > 0 ? 1 : 0);
  }
  const bool has_other = problem.other.defined();
  const ChainGradients gradients = chain.gradients({.grad_output = here.grad_output,
                                                    .output = got.output,
                                                    .of_features = true,
                                                    .of_other = has_other},
                                                   here.input(), parameters, *got.record);
  expect_close(gradients.features, wanted.features, tolerance, "gradient of the features");
  if (has_other) expect_close(gradients.other, wanted.other, tolerance, "gradient of the other");
  ASSERT_EQ(gradients.parameters.size(), wanted.parameters.size());
  for (std::size_t i = 0; i < wanted.parameters.size(); ++i) {
    const Lies lies = i % 3 == 0 ? problem.chain_case.links[i / 3].lies : Lies::plain;
    const Tensor& parameter = i % 3 == 0   ? here.owned[i / 3].weight
                              : i % 3 == 1 ? here.owned[i / 3].scale
                                           : here.owned[i / 3].shift;
    EXPECT_EQ(gradients.parameters[i].dtype(), parameter.dtype());
    expect_close(gradients.parameters[i], laid(wanted.parameters[i], lies), tolerance,
                 "gradient of parameter " + std::to_string(i));
  }
}

TEST(Chain, TrainsAsItsOperatorsDo) {
  for (const ChainCase& one : all_cases()) {
    for (const std::int64_t rows : {0, 33}) {
      SCOPED_TRACE(one.name + ", " + std::to_string(rows) + " rows");
      check_training(ChainProblem(one, rows), {}, kClose);
    }
  }
}

TEST(Chain, TrainsInTypesOfEachKind) {
  for (const ChainCase& one : all_cases()) {
    SCOPED_TRACE(one.name);
    const ChainProblem problem(one, 33);
    check_training(problem, {DType::f32, DType::f32, DType::f32}, 1e-3);
    // Five norms one after the other make percents of what half precision leaves out.
    if (one.links.size() > 3) continue;
    check_training(problem, {DType::f16, DType::f16, DType::f32}, 0.2);
    check_training(problem, {DType::f16, DType::f16, DType::f16}, 0.2);
  }
}

TEST(Chain, InfersAsItsOperatorsDo) {
  for (const ChainCase& one : all_cases()) {
    for (const std::int64_t rows : {0, 1, 33}) {
      SCOPED_TRACE(one.name + ", " + std::to_string(rows) + " rows");
      const ChainProblem problem(one, rows);
      OnStream here(problem, {}, {});
      Chain chain = problem.chain();
      ChainWeights weights(chain, here.parameters(), here.running());
      const Tensor expected = OneByOne(problem).infer();
      for (int pass = 0; pass < 2; ++pass)
        expect_close(chain.infer(here.input(), weights), expected, kClose, "output");
    }
  }
}

TEST(Chain, SeesAChangedWeight) {
  ChainProblem problem(chain_cases()[2], 33);
  OnStream here(problem, {}, {});
  Chain chain = problem.chain();
  chain.train(here.input(), here.parameters(), here.running());
  fill_async(here.owned[0].weight.view(), 0.25, {});
  fill_async(problem.parameters[0].weight.view(), 0.25, {});
  const ChainTrained got = chain.train(here.input(), here.parameters(), here.running());
  expect_close(got.output, OneByOne(problem).train(), kClose, "trained");
  ChainWeights weights(chain, here.parameters(), here.running());
  for (std::size_t i = 0; i < 2; ++i) {   // which training moved
    problem.parameters[i].mean = here.owned[i].mean;
    problem.parameters[i].variance = here.owned[i].variance;
  }
  expect_close(chain.infer(here.input(), weights), OneByOne(problem).infer(), kClose, "inferred");
}

TEST(Chain, MakesNoGradientThatNobodyWants) {
  for (const ChainCase& one : {chain_cases()[4], joined_cases()[0], joined_cases()[5]}) {
    SCOPED_TRACE(one.name);
    const ChainProblem problem(one, 33);
    OnStream here(problem, {}, {});
    Chain chain = problem.chain();
    const auto parameters = here.parameters();
    const ChainTrained got = chain.train(here.input(), parameters, here.running());
    for (const bool of_features : {false, true}) {
      for (const bool of_other : {false, true}) {
        const ChainGradients gradients =
            chain.gradients({here.grad_output, got.output, of_features, of_other}, here.input(),
                            parameters, *got.record);
        EXPECT_EQ(gradients.features.defined(), of_features);
        EXPECT_EQ(gradients.other.defined(), of_other);
        for (const Tensor& gradient : gradients.parameters)
          EXPECT_TRUE(gradient.defined());
      }
    }
  }
}

TEST(Chain, ResultsAreMadeWhereTheyGoAndNothingElseIs) {
  for (const ChainCase& one : all_cases()) {
    SCOPED_TRACE(one.name);
    const ChainProblem problem(one, 33);
    OnStream here(problem, {DType::f32, DType::f32, DType::f32}, {});
    Chain chain = problem.chain();
    const auto parameters = here.parameters();
    Remembers forward;
    const ChainTrained got = chain.train(here.input(), parameters, here.running(), forward);
    ASSERT_EQ(forward.made.size(), 1u);
    EXPECT_TRUE(forward.holds(got.output));

    Remembers backward;
    const ChainGradients gradients = chain.gradients(
        {here.grad_output, got.output, true, problem.other.defined()}, here.input(), parameters,
        *got.record, {.features = backward, .other = backward, .parameters = backward});
    std::size_t returned = 1;
    EXPECT_TRUE(backward.holds(gradients.features));
    if (gradients.other.defined()) {
      EXPECT_TRUE(backward.holds(gradients.other));
      ++returned;
    }
    std::set<std::size_t> in_pieces;
    for (const ChainGradients::Piece& piece : gradients.pieces) {
      EXPECT_TRUE(backward.holds(piece.memory));
      ++returned;
      std::int64_t next = 0;   // one after the other
      for (const std::size_t member : piece.members) {
        in_pieces.insert(member);
        const Tensor& gradient = gradients.parameters[member];
        EXPECT_EQ(gradient.raw(), piece.memory.part(next, {gradient.elements()}).raw());
        next += gradient.elements();
      }
      EXPECT_EQ(next, piece.memory.elements());
    }
    for (std::size_t i = 0; i < gradients.parameters.size(); ++i) {
      if (in_pieces.count(i) != 0) continue;
      EXPECT_TRUE(backward.holds(gradients.parameters[i])) << i;
      ++returned;
    }
    EXPECT_EQ(backward.made.size(), returned);

    ChainWeights weights(chain, parameters, here.running());
    Remembers inference;
    const Tensor output = chain.infer(here.input(), weights, inference);
    ASSERT_EQ(inference.made.size(), 1u);
    EXPECT_TRUE(inference.holds(output));
  }
}

TEST(Chain, KeepsNoTwoValuesSideBySide) {
  for (const ChainCase& one : joined_cases()) {
    SCOPED_TRACE(one.name);
    const ChainProblem problem(one, 1000);
    OnStream here(problem, {}, {});
    Chain chain = problem.chain();
    const auto parameters = here.parameters();
    const std::int64_t before = cpu_memory_use().current_bytes;
    const ChainTrained got = chain.train(here.input(), parameters, here.running());
    const std::int64_t kept = cpu_memory_use().current_bytes - before;
    std::int64_t convolved_and_normalized = 0;
    std::int64_t smallest = std::numeric_limits<std::int64_t>::max();   // of two side by side
    for (std::size_t i = 0; i < one.links.size(); ++i) {
      const auto bytes_of_rows = [](std::int64_t rows, std::int64_t channels) {
        return rows * channels * static_cast<std::int64_t>(sizeof(double));
      };
      const KernelMapView& map = here.views[i];
      convolved_and_normalized += 2 * bytes_of_rows(map.out_rows, one.links[i].channels);
      if (one.links[i].second)
        smallest =
            std::min(smallest, bytes_of_rows(map.in_rows, problem.parameters[i].weight.extent(1)));
    }
    EXPECT_GE(kept, convolved_and_normalized);
    EXPECT_LT(kept, convolved_and_normalized + smallest);
  }
}

TEST(Chain, TakesTwoValuesOnTheSameRowsAlone) {
  ChainProblem problem(joined_cases()[0], 33);
  problem.other = random_tensor({32, 4}, DType::f64, 2);
  OnStream here(problem, {}, {});
  const Chain chain = problem.chain();
  const std::string said =
      message_of([&] { chain.train(here.input(), here.parameters(), here.running()); });
  EXPECT_NE(said.find("33"), std::string::npos) << said;
  EXPECT_NE(said.find("32"), std::string::npos) << said;
}

TEST(Chain, WhatDoesNotFitIsASentence) {
  EXPECT_EQ(message_of([] { Chain(Links{}); }), "a chain of no links: give at least one");
  EXPECT_EQ(message_of([] { Chain(Links{{.input = 2}}); }),
            "link 0 takes value 2, which no link before it makes: there are 2");
  EXPECT_EQ(message_of([] {
              Chain(Links{{.input = 0}, {.input = 0}});
            }),
            "no link takes what link 0 makes: leave it out");
  EXPECT_EQ(message_of([] { Chain(Links{{.input = 0, .second = 2}}); }),
            "link 0 takes value 2, which no link before it makes: there are 2");
  const ChainProblem problem(chain_cases()[4], 33);
  OnStream here(problem, {}, {});
  Chain chain = problem.chain();
  auto parameters = here.parameters();
  const auto running = here.running();
  const auto train = [&](const ChainInput& input) {
    return message_of([&] { chain.train(input, parameters, running); });
  };
  ChainInput input = here.input();
  input.other = {};
  EXPECT_EQ(train(input), "other is undefined, and a link takes it: give value 1 of the chain");
  input = here.input();
  input.maps = input.maps.first(1);
  EXPECT_EQ(train(input), "1 maps for a chain of 2 links: give one for each");
  input = here.input();
  const ConstTensorView& weight = parameters[0].weight;
  parameters[0].weight = {weight.raw(), weight.dtype(), {27, 32}, {}};
  EXPECT_EQ(train(input),
            "weight has shape [27, 32]: give [offsets, input channels, output channels]");
  const WeightLayout layout(std::vector<std::int64_t>{27, 4, 4}, std::vector<int>{0, 1, 2});
  parameters[0].layout = &layout;
  EXPECT_EQ(train(input), "weight has shape [27, 32]: the layer's is made of [27, 4, 4]");
  parameters = here.parameters();
  const ChainTrained got = chain.train(input, parameters, running);
  EXPECT_EQ(message_of([&] {
              chain.gradients({.grad_output = here.grad_output}, input, parameters, *got.record);
            }),
            "output is undefined, and the chain ends with a ReLU: give what train returned");
  EXPECT_EQ(message_of([&] {
              ChainWeights weights(problem.chain(), parameters, running);
              Chain(Links{{.input = 0}}).infer(input, weights);
            }),
            "2 maps for a chain of 1 links: give one for each");
}

}   // namespace
}   // namespace pumice::nn
