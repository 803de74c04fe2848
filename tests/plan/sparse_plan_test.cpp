// Plans of sparse products as values and as texts.
// Covers sparse_plan, sparse_plan_text, sparse_problem.
#include <pumice/plan/sparse_plan.hpp>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/plan/convolution_plan.hpp>
#include <pumice/plan/sparse_problem.hpp>

#include "support/message_of.hpp"

namespace pumice::test {
namespace {

std::vector<SparsePlan> some_plans() {
  return {
      {.ranges = RangeSchedule{}},
      {.format = SparseFormat::ell, .width = 32, .ranges = RangeSchedule{.work = 1, .ahead = 3}},
      {.format = SparseFormat::hyb,
       .column_parts = 4,
       .width = 16,
       .ranges = RangeSchedule{.work = 1 << 20}},
      {.teams = TeamSchedule{.team = 8, .chunks = 2, .ahead = 1, .units = 0, .part_teams = 0}},
      {.teams = TeamSchedule{.units = 12}}};
}

TEST(SparsePlanText, says_all_of_a_plan) {
  for (const SparsePlan& plan : some_plans()) {
    const SparsePlan read = parse_sparse_plan(to_text(plan));
    EXPECT_TRUE(read.runs_like(plan)) << to_text(plan);
    EXPECT_EQ(read.name(), plan.name());
    EXPECT_EQ(read.reason, "given");
  }
  EXPECT_EQ(to_text(some_plans()[0]), R"({"format":"csr","ranges":{"work":65536,"ahead":8}})");
}

TEST(SparsePlanText, names_tell_plans_apart) {
  std::vector<std::string> names;
  for (const SparsePlan& plan : some_plans())
    names.push_back(plan.name());
  EXPECT_EQ(names,
            (std::vector<std::string>{"csr/ranges of 65536/8 ahead", "ell(32)/ranges of 1/3 ahead",
                                      "hyb(4, 16)/ranges of 1048576/8 ahead", "csr/t8x2_n1",
                                      "csr/t32x1_n4/runs of 12/parts 32"}));
}

TEST(SparsePlanText, refuses_what_is_no_plan) {
  const auto refusal = [](const std::string& text) {
    return message_of([&] { (void)parse_sparse_plan(text); });
  };
  EXPECT_NE(refusal("csr").find("it is no JSON"), std::string::npos);
  EXPECT_NE(refusal("{}").find("it names no format"), std::string::npos);
  EXPECT_NE(refusal(R"({"format":"coo"})").find("format has a value that is not known"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"format":"csr","ranges":3})").find("ranges is no JSON object"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"format":"csr","teams":{"team":true}})").find("team is of another type"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"format":"csr","tile":{}})").find("\"tile\" is no part of a plan"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"format":"csr","width":-1})").find("width = -1"), std::string::npos);
  EXPECT_NE(refusal(R"({"dataflow":"implicit_gemm"})").find("it names no format"),
            std::string::npos);
  // Nor is a plan of a sparse product one of a convolution.
  EXPECT_NE(message_of([] { (void)parse_plan(to_text(some_plans()[0])); }).find("no dataflow"),
            std::string::npos);
}

TEST(SparseProblemText, says_what_a_plan_may_depend_on) {
  SparseProblem problem{.channels = 128};
  EXPECT_EQ(to_text(problem), "spmm forward sum f32 channels 128");
  problem.weighted = true;
  problem.heads = 4;
  problem.reduction = EntryReduction::max;
  problem.direction = SparseDirection::features_gradient;
  problem.dtype = DType::bf16;
  EXPECT_EQ(to_text(problem), "spmm features_gradient max bf16 channels 128 heads 4 weighted");
  problem.op = SparseOperator::sddmm;
  problem.direction = SparseDirection::forward;
  problem.weighted = false;
  EXPECT_EQ(to_text(problem), "sddmm forward bf16 channels 128 heads 4");
}

TEST(SparseProblemText, words_are_read_back) {
  for (const SparseOperator op :
       {SparseOperator::spmm, SparseOperator::sddmm, SparseOperator::edge_scores})
    EXPECT_EQ(parse_sparse_operator(name_of(op)), op);
  for (const EntryReduction reduction :
       {EntryReduction::sum, EntryReduction::mean, EntryReduction::max, EntryReduction::min})
    EXPECT_EQ(parse_entry_reduction(name_of(reduction)), reduction);
  EXPECT_EQ(message_of([] { (void)parse_sparse_operator("spam"); }),
            "operator = spam: choose spmm, sddmm or edge_scores");
  EXPECT_EQ(message_of([] { (void)parse_entry_reduction("all"); }),
            "reduce = all: choose sum, mean, max or min");
}

}   // namespace
}   // namespace pumice::test
