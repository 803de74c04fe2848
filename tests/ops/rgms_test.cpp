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
