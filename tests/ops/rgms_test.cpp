// Relational products beside a loop over edges in float64, on the CPU.
#include <pumice/ops/rgms.hpp>

#include <gtest/gtest.h>

#include "graphs/random_pattern.hpp"
#include "ops/rgms_reference.hpp"
#include "support/message_of.hpp"

namespace pumice::test {
namespace {

TEST(Rgms, IsWhatItsDefinitionSays) {
  for (const TypedCase& one : typed_cases()) {
    for (const Kind& kind : kKinds) {
      for (const bool weighted : {true, false}) {
        const RgmsProblem problem(one, kind.type, weighted);
        TypedGraph graph = one.graph();
        check(problem, graph, {}, kind);
      }
    }
  }
}

TEST(Rgms, IsAddedToWhatTargetsBringThemselves) {
  std::vector<TypedCase> cases = typed_cases();
  cases.push_back({random_pattern(33, 33, 150, 3), 2, {}});
  for (std::int64_t e = 0; e < 150; ++e)
    cases.back().type.push_back(e % 2);
  for (const TypedCase& one : cases) {
    for (const Kind& kind : kKinds) {
      const RgmsProblem problem(one, kind.type, false);
      TypedGraph graph = one.graph();
      check_roots(problem, graph, {}, kind);
    }
  }
}

TEST(Rgms, GradientsOfMaximaAreAddedToThoseOfTheRoot) {
  TypedCase one{random_pattern(33, 33, 150, 3), 2, {}};
  for (std::int64_t e = 0; e < 150; ++e)
    one.type.push_back(e % 2);
  const RgmsProblem problem(one, DType::f64, false);
  TypedGraph graph = one.graph();
  const Tensor root = random_tensor({RgmsProblem::kIn, RgmsProblem::kOut}, DType::f64, 6);
  const RgmsResult made = rgms(graph.view(), {}, problem.x, problem.weight, EntryReduction::max);
  const auto gradient = [&](const RootTerm& term) {
    return rgms_gradients(graph.view_both_ways(), {}, problem.x, problem.weight, made.gathered,
                          made.source, problem.grad, EntryReduction::max, {}, {}, {}, term)
        .features;
  };
  expect_near(gradient({.root = root}),
              sum_of(gradient({}), dense_product(problem.grad, false, root, true)), 1e-12,
              "gradient of the features");
}

TEST(Rgms, RefusesRootsThatDoNotFit) {
  TypedCase one{random_pattern(4, 3, 5, 3), 1, {0, 0, 0, 0, 0}};
  const RgmsProblem problem(one, DType::f32, false);
  const TypedGraph graph = one.graph();
  const auto said = [&](const RootTerm& term) {
    return message_of([&] {
      rgms(graph.view(), {}, problem.x, problem.weight, EntryReduction::sum, {}, {}, term);
    });
  };
  const Tensor root = Tensor::zeros({8, 16}, DType::f32);
  EXPECT_EQ(said({.root = root}),
            "rgms: 3 features are the targets of a graph of 4: give the features of targets");
  const Tensor targets = Tensor::zeros({5, 8}, DType::f32);
  EXPECT_EQ(said({.targets = targets, .root = root}),
            "rgms: targets has 5 rows and the graph 4 targets: give one row for each");
  const Tensor narrow = Tensor::zeros({8, 15}, DType::f32);
  const Tensor rows = Tensor::zeros({4, 8}, DType::f32);
  EXPECT_EQ(said({.targets = rows, .root = narrow}),
            "rgms: root has shape [8, 15] and weight [1, 8, 16]: give as many channels out");
}

TEST(Rgms, TypedGraphsRefuseEdgesThatLeadNowhere) {
  const auto said = [](std::vector<std::int64_t> row, std::vector<std::int64_t> type) {
    return message_of([&] { TypedGraph(2, 2, 2, i64(row), i64({0, 1}), i64(type)); });
  };
  EXPECT_EQ(said({0, 2}, {0, 1}),
            "TypedGraph: row[1] = 2 where there are 2: give numbers from 0 on");
  EXPECT_EQ(said({0, 1}, {0, -1}),
            "TypedGraph: type[1] = -1 where there are 2: give numbers from 0 on");
  EXPECT_NE(said({0}, {0, 1}).find("[2] on the CPU"), std::string::npos);
}

}   // namespace
}   // namespace pumice::test
