// The plans of a layer as one text.
#include <pumice/plan/layer_plans.hpp>

#include <memory>

#include <gtest/gtest.h>

#include "support/message_of.hpp"

namespace pumice {
namespace {

using test::message_of;

PlanPtr plan(const char* text) {
  return std::make_shared<const ConvolutionPlan>(parse_plan(text));
}

const char* const kTiles = R"({"dataflow":"fetch_on_demand","tile_rows":512})";
const char* const kTable = R"({"dataflow":"implicit_gemm","tile_rows":64,"sort_by_mask":true})";

TEST(LayerPlans, go_to_text_and_back) {
  const LayerPlans plans{.forward = plan(kTiles),
                         .weight_gradient = plan(R"({"dataflow":"sum_over_pairs"})")};
  const std::string text = to_text(plans);
  EXPECT_EQ(text, std::string(R"({"forward":)") + kTiles +
                      R"(,"weight_gradient":{"dataflow":"sum_over_pairs"}})");
  EXPECT_TRUE(parse_layer_plans(text).run_like(plans));
  EXPECT_EQ(to_text(LayerPlans{}), "{}");
  EXPECT_TRUE(parse_layer_plans("{}").empty());
}

TEST(LayerPlans, of_one_plans_text_have_it_alone) {
  const LayerPlans plans = parse_layer_plans(kTable, Direction::input_gradient);
  EXPECT_TRUE(plans.run_like({.input_gradient = plan(kTable)}));
  EXPECT_FALSE(plans.run_like({.forward = plan(kTable)}));
  EXPECT_FALSE(plans.run_like({.input_gradient = plan(kTiles)}));
}

TEST(LayerPlans, round_weights_where_nothing_but_implicit_gemm_takes_them) {
  EXPECT_TRUE(LayerPlans{}.round_weights());
  EXPECT_TRUE((LayerPlans{.forward = plan(kTable)}.round_weights()));
  EXPECT_FALSE(
      (LayerPlans{.forward = plan(kTable), .input_gradient = plan(kTiles)}.round_weights()));
}

TEST(LayerPlans, of_something_else_are_refused) {
  const auto said = [](const char* text) { return message_of([&] { parse_layer_plans(text); }); };
  EXPECT_NE(said("no").find("it is no JSON object; give the text of a plan"), std::string::npos);
  EXPECT_NE(said(R"({"back":{}})").find("there are forward, input_gradient and weight_gradient"),
            std::string::npos);
  EXPECT_NE(said(R"({"forward":{"dataflow":"fast"}})").find("is not known"), std::string::npos);
}

}   // namespace
}   // namespace pumice
