// The gradient tape by itself, on scalars whose derivatives are known.
#include <pumice/nn/tape.hpp>

#include <gtest/gtest.h>

#include <pumice/ops/elementwise.hpp>

#include "nn/scenes.hpp"

namespace pumice::nn {
namespace {

using test::message_of;

Tensor scalar(double value) {
  return Tensor::full({1, 1}, DType::f64, value);
}
double number(const Tensor& tensor) {
  return tensor.data<double>()[0];
}

NodePtr times(double factor, const NodePtr& from) {
  return std::make_shared<Node>(std::vector{from}, [factor, from](const Tensor& gradient) {
    from->accumulate(scale(gradient, factor));
  });
}

NodePtr plus(const NodePtr& left, const NodePtr& right) {
  return std::make_shared<Node>(std::vector{left, right}, [left, right](const Tensor& gradient) {
    left->accumulate(gradient);
    right->accumulate(gradient);
  });
}

TEST(Tape, chain_multiplies_slopes) {
  const auto x = std::make_shared<Node>();
  backward(times(3, times(2, x)), scalar(1));
  EXPECT_EQ(number(x->gradient()), 6);
}

TEST(Tape, branches_of_unequal_length_add_up_before_their_source_runs) {
  // y = 5·(2x) + 7·3·(2x): the node 2x must wait for the longer branch.
  const auto x = std::make_shared<Node>();
  const NodePtr shared = times(2, x);
  backward(plus(times(5, shared), times(7, times(3, shared))), scalar(1));
  EXPECT_EQ(number(x->gradient()), 2 * 5 + 2 * 21);
}

TEST(Tape, a_branch_that_is_its_own_sibling_counts_twice) {
  const auto x = std::make_shared<Node>();
  backward(plus(x, x), scalar(4));
  EXPECT_EQ(number(x->gradient()), 8);
}

TEST(Tape, adding_gradients_leaves_the_first_one_as_it_was) {
  const Tensor first = scalar(1);
  Node node;
  node.accumulate(first);
  node.accumulate(scalar(2));
  EXPECT_EQ(number(first), 1);
  EXPECT_EQ(number(node.gradient()), 3);
}

TEST(Tape, saved_values_go_as_soon_as_their_node_has_run) {
  const auto x = std::make_shared<Node>();
  auto saved = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = saved;
  bool gone_before_next = false;
  const NodePtr early = std::make_shared<Node>(std::vector{x}, [&](const Tensor& gradient) {
    gone_before_next = watched.expired();
    x->accumulate(gradient);
  });
  NodePtr late = std::make_shared<Node>(
      std::vector{early},
      [early, saved = std::move(saved)](const Tensor& gradient) { early->accumulate(gradient); });
  backward(late, scalar(1));
  EXPECT_TRUE(gone_before_next);
  EXPECT_EQ(number(x->gradient()), 1);
}

TEST(Tape, a_graph_runs_once) {
  const auto x = std::make_shared<Node>();
  const NodePtr y = times(2, x);
  backward(y, scalar(1));
  EXPECT_EQ(message_of([&] { backward(y, scalar(1)); }),
            "backward: this graph has run already; record a new forward pass");
}

TEST(Tape, nothing_recorded_is_said) {
  EXPECT_EQ(message_of([] { backward(nullptr, scalar(1)); }),
            "backward: nothing was recorded; run the forward pass with Context::record set");
}

TEST(Tape, ten_thousand_nodes_in_a_row_do_not_exhaust_the_stack) {
  const auto x = std::make_shared<Node>();
  NodePtr y = x;
  for (int i = 0; i < 10'000; ++i)
    y = times(1, y);
  backward(y, scalar(1));
  EXPECT_EQ(number(x->gradient()), 1);
}

}   // namespace
}   // namespace pumice::nn
