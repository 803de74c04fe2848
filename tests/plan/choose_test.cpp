// The design space, texts of plans, and what is remembered.
#include <pumice/plan/choose.hpp>

#include <set>
#include <utility>

#include <gtest/gtest.h>

#include <pumice/shared/tile_limits.h>
#include <pumice/core/error.hpp>

#include "plan/choice_memo.hpp"
#include "support/message_of.hpp"

namespace pumice {
namespace {

using test::message_of;

ConvolutionProblem layer(Direction direction, DType type) {
  return {.direction = direction,
          .in_rows = 60000,
          .out_rows = 60000,
          .pairs = 300000,
          .offsets = 27,
          .in_channels = 96,
          .out_channels = 64,
          .dtype = type};
}

constexpr Direction kDirections[] = {Direction::forward, Direction::input_gradient,
                                     Direction::weight_gradient};
constexpr std::uint32_t kEach[] = {kSm80, kSm86, kSm89, kSm90a, kSm100, kSm120};

/// What the rules take comes first, costs ascend behind it, all can be run and differ.
void expect_space(const ConvolutionProblem& problem, const Target& target) {
  const std::vector<Candidate> all = candidates(problem, target);
  ASSERT_FALSE(all.empty());
  EXPECT_LE(all.size(), kMostCandidates);
  EXPECT_TRUE(all.front().plan.runs_like(*choose_by_rules(problem, target)))
      << all.front().plan.name();
  EXPECT_EQ(all.front().cost, 1);
  std::set<std::string> names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_NO_THROW(check(all[i].plan, problem, target)) << all[i].plan.name();
    EXPECT_TRUE(names.insert(all[i].plan.name()).second) << all[i].plan.name();
    if (i > 1) {
      EXPECT_GE(all[i].cost, all[i - 1].cost) << all[i].plan.name();
    }
  }
}

TEST(Candidates, of_every_direction_type_and_machine_can_be_run) {
  for (const Direction direction : kDirections) {
    for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
      for (const std::int64_t rows : {std::int64_t{0}, std::int64_t{1}, std::int64_t{33},
                                      std::int64_t{65537}, std::int64_t{5'000'000}}) {
        for (const bool deterministic : {false, true}) {
          ConvolutionProblem problem = layer(direction, type);
          problem.in_rows = problem.out_rows = rows;
          problem.pairs = rows * 5;
          problem.numerics.deterministic = deterministic;
          SCOPED_TRACE(to_text(problem) + ", " + std::to_string(rows) + " rows");
          expect_space(problem, target_of(Device{}));
          for (const std::uint32_t architecture : kEach)
            expect_space(problem, usual_target(architecture));
        }
      }
    }
  }
}

TEST(Candidates, have_what_a_tuner_may_decide) {
  ConvolutionProblem problem = layer(Direction::forward, DType::f16);
  problem.in_channels = 384;
  problem.in_rows = problem.out_rows = 6000;   // few tiles, long ones
  bool splits = false, adds = false, unsorted = false, pairs = false;
  for (const Candidate& one : candidates(problem, usual_target(kSm90a))) {
    splits |= one.plan.splits > 1;
    adds |= one.plan.write == Write::add;
    unsorted |= one.plan.dataflow == Dataflow::implicit_gemm && !one.plan.sort_by_mask;
    pairs |= one.plan.dataflow == Dataflow::fetch_on_demand;
  }
  EXPECT_TRUE(splits && adds && unsorted && pairs) << splits << adds << unsorted << pairs;
}

int splits_of(DType type, bool tf32, std::int64_t channels, std::int64_t rows,
              std::int64_t offsets = 27) {
  ConvolutionProblem problem = layer(Direction::forward, type);
  problem.numerics.tf32 = tf32;
  problem.in_channels = problem.out_channels = channels;
  problem.in_rows = problem.out_rows = rows;
  problem.offsets = offsets;
  const PlanPtr plan = choose_by_rules(problem, usual_target(kSm90a));
  EXPECT_EQ(plan->write == Write::slots, plan->splits > 1) << plan->name();
  return plan->splits;
}

TEST(Rules, split_the_offsets_of_long_sums_and_few_rows) {
  EXPECT_EQ(splits_of(DType::f32, false, 256, 6000), 4);
  EXPECT_EQ(splits_of(DType::f32, false, 64, 6000), 4);
  EXPECT_EQ(splits_of(DType::f32, false, 32, 60152), 4);
  EXPECT_EQ(splits_of(DType::f32, false, 48, 91767), 3) << "as 96 channels there";
  EXPECT_EQ(splits_of(DType::f32, false, 32, 111372), 1) << "sums would take longer";
  EXPECT_EQ(splits_of(DType::f32, false, 8, 6000), 1);
  EXPECT_EQ(splits_of(DType::f32, false, 256, 6000, 8), 1) << "few offsets";
  EXPECT_EQ(splits_of(DType::f32, false, 96, 91767), 3) << "128 MiB of sums";
  EXPECT_EQ(splits_of(DType::f32, false, 256, 5'000'000), 1);
  EXPECT_EQ(splits_of(DType::f32, true, 256, 6000), 4);
  EXPECT_EQ(splits_of(DType::f32, true, 256, 21222), 1) << "CenterPoint was slower by it";
  EXPECT_EQ(splits_of(DType::f32, true, 64, 14467), 4);
  EXPECT_EQ(splits_of(DType::f32, true, 256, 14467), 3) << "48 MiB of sums";
  EXPECT_EQ(splits_of(DType::f16, false, 256, 5925), 4);
  EXPECT_EQ(splits_of(DType::bf16, false, 128, 5925), 4);
  EXPECT_EQ(splits_of(DType::f16, false, 256, 14467), 1) << "fills the machine";
  EXPECT_EQ(splits_of(DType::f16, false, 64, 5925), 1);
}

TEST(Rules, take_whole_tiles_for_the_gradients_of_96_channels_in_tf32) {
  ConvolutionProblem problem = layer(Direction::weight_gradient, DType::f32);
  problem.numerics.tf32 = true;
  problem.out_channels = 96;
  const auto tile = [&] {
    const PlanPtr plan = choose_by_rules(problem, usual_target(kSm90a));
    return std::pair(plan->gradient->tile_in, plan->gradient->tile_out);
  };
  EXPECT_EQ(tile(), std::pair(96, 96));
  problem.in_channels = 128;
  EXPECT_EQ(tile(), std::pair(64, 96));
}

TEST(ProblemText, goes_there_and_back) {
  const std::vector<ConvolutionProblem> problems{
      {.offsets = 27, .in_channels = 4, .out_channels = 32, .dtype = DType::f16},
      {.direction = Direction::input_gradient,
       .offsets = 8,
       .in_channels = 64,
       .out_channels = 64,
       .groups = 64,
       .numerics = {.deterministic = true, .tf32 = true}},
      {.direction = Direction::weight_gradient,
       .offsets = 1,
       .in_channels = 1,
       .out_channels = 1,
       .dtype = DType::bf16,
       .identity = true},
      {.offsets = 27,
       .in_channels = 96,
       .out_channels = 128,
       .dtype = DType::f64,
       .activations = ActivationSet::all,
       .second_channels = 32,
       .shortcut_channels = 128,
       .shortcut_second_channels = 48},
  };
  for (const ConvolutionProblem& problem : problems)
    EXPECT_EQ(parse_problem(to_text(problem)), problem) << to_text(problem);
  for (const char* text :
       {"", "forward", "backward f16 4>8 offsets 27", "forward f16 4-8 offsets 27",
        "forward f16 4>8 offsets", "forward f16 4>8 offsets 27 more", "forward f16 4>8 27",
        "forward f16 4>-8 offsets 27", "forward f16 4>8 offsets 27identity",
        "forward f16 4>8 offsets 27 shortcut 8 of"})
    EXPECT_THROW(parse_problem(text), UserError) << text;
}

TEST(PlanText, goes_there_and_back) {
  for (const Direction direction : kDirections) {
    for (const Target& target : {target_of(Device{}), usual_target(kSm90a)}) {
      for (const Candidate& one : candidates(layer(direction, DType::f16), target)) {
        const ConvolutionPlan back = parse_plan(to_text(one.plan));
        EXPECT_TRUE(back.runs_like(one.plan)) << to_text(one.plan);
      }
    }
  }
  EXPECT_EQ(to_text(ConvolutionPlan{.dataflow = Dataflow::implicit_gemm,
                                    .tile_rows = 512,
                                    .sort_by_mask = true,
                                    .splits = 2}),
            R"({"dataflow":"implicit_gemm","tile_rows":512,"sort_by_mask":true,"splits":2})");
}

TEST(PlanText, of_something_else_is_refused) {
  const auto said = [](const char* text) { return message_of([&] { parse_plan(text); }); };
  const std::string remedy = "; give the text of a plan, as explain() and plan files have it";
  EXPECT_EQ(said("no"), "plan \"no\": it is no JSON" + remedy);
  EXPECT_EQ(said("[1]"), "plan \"[1]\": it is no JSON object" + remedy);
  EXPECT_EQ(said("{}"), "plan \"{}\": it names no dataflow" + remedy);
  EXPECT_NE(said(R"({"dataflow":"fast"})").find("dataflow has a value that is not known"),
            std::string::npos);
  EXPECT_NE(said(R"({"dataflow":"implicit_gemm","splits":true})").find("splits is of another type"),
            std::string::npos);
  EXPECT_NE(said(R"({"dataflow":"implicit_gemm","splits":99999999999})")
                .find("splits = 99999999999 is out of range"),
            std::string::npos);
  EXPECT_NE(
      said(R"({"dataflow":"implicit_gemm","colour":1})").find("\"colour\" is no part of a plan"),
      std::string::npos);
  EXPECT_NE(said(R"({"dataflow":"implicit_gemm","tile":7})").find(": tile is no JSON object; give"),
            std::string::npos);
  EXPECT_NE(
      said(R"({"dataflow":"sum_over_pairs","gradient":[1]})").find(": gradient is no JSON object"),
      std::string::npos);
  // Numbers that the text of a plan leaves out where they are what there is without them.
  EXPECT_NE(said(R"({"dataflow":"fetch_on_demand","tile_rows":-1})")
                .find(": tile_rows = -1 is less than 0; give"),
            std::string::npos);
  EXPECT_NE(said(R"({"dataflow":"implicit_gemm","splits":0})").find(": splits = 0 is less than 1"),
            std::string::npos);
  EXPECT_EQ(parse_plan(R"({"dataflow":"fetch_on_demand","tile_rows":0,"splits":1})").splits, 1);
}

TEST(Choices, are_remembered_until_they_are_forgotten) {
  const ConvolutionProblem problem = layer(Direction::forward, DType::f16);
  const Target target = usual_target(kSm90a);
  const PlanPtr first = choose(problem, target);
  EXPECT_EQ(choose(problem, target), first);
  ConvolutionProblem close = problem;
  close.out_rows += 1;
  close.pairs = 7;   // nobody looks at them
  EXPECT_EQ(choose(close, target), first);
  close.out_rows *= 8;
  EXPECT_NE(choose(close, target), first);
  EXPECT_NE(choose(problem, usual_target(kSm80)), first);
  EXPECT_NE(choose(problem, target, Dataflow::fetch_on_demand), first);
  rule_memo().clear();
  const PlanPtr again = choose(problem, target);
  EXPECT_NE(again, first);
  EXPECT_TRUE(again->runs_like(*first));
}

TEST(GivenPlans, of_a_device_are_checked_against_the_problem) {
  const ConvolutionProblem problem = layer(Direction::forward, DType::f16);
  const Target target = usual_target(kSm90a);
  const auto refusal = [&](auto&& change) {
    ConvolutionPlan plan = *choose(problem, target);
    EXPECT_NO_THROW(check(plan, problem, target));
    change(plan);
    return message_of([&] { check(plan, problem, target); });
  };
  EXPECT_NE(refusal([](auto& p) { p.tile->tile_columns = 12; }).find("has no kernel: "),
            std::string::npos);
  EXPECT_NE(refusal([](auto& p) { p.tile.reset(); }).find("or lacks"), std::string::npos);
  EXPECT_NE(refusal([](auto& p) { p.write = Write::add; }).find("has nothing to add up"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& p) { p.splits = 2; }).find("cannot add products up"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& p) { p.tile_rows = 64; }).find("is one of a CPU"), std::string::npos);
  EXPECT_NE(refusal([](auto& p) { p.fuses_inputs = true; }).find("which these have not"),
            std::string::npos);
  ConvolutionProblem same_bits = problem;
  same_bits.numerics.deterministic = true;
  ConvolutionPlan adds = *choose(problem, target);
  adds.splits = 2;
  adds.write = Write::add;
  EXPECT_NE(message_of([&] { check(adds, same_bits, target); }).find("deterministic results"),
            std::string::npos);
  const ConvolutionPlan elsewhere = *choose(problem, target);   // wgmma
  EXPECT_NE(message_of([&] {
              check(elsewhere, problem, usual_target(kSm80));
            }).find("has no kernel on this device"),
            std::string::npos);
}

}   // namespace
}   // namespace pumice
