// A graph is a pattern that keeps its transpose.
#include <pumice/graphs/graph.hpp>

#include <vector>

#include <gtest/gtest.h>

#include "graphs/random_pattern.hpp"

namespace pumice::test {
namespace {

TEST(Graph, MakesItsTransposeOnce) {
  for (const PatternCase& one : pattern_cases()) {
    SCOPED_TRACE(one.name);
    Graph graph(one.csr());
    EXPECT_EQ(graph.view().rows, one.rows);
    const auto back = graph.backwards();
    EXPECT_EQ(back, graph.backwards());
    const Csr expected = transposed(graph.view());
    const CsrView got = back->view(), wanted = expected.view();
    EXPECT_EQ(std::vector(got.row_begin.begin(), got.row_begin.end()),
              std::vector(wanted.row_begin.begin(), wanted.row_begin.end()));
    EXPECT_EQ(std::vector(got.column.begin(), got.column.end()),
              std::vector(wanted.column.begin(), wanted.column.end()));
  }
}

}   // namespace
}   // namespace pumice::test
