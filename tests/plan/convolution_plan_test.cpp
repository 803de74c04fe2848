// Which dataflow the rules take, and that they can say why.
#include <pumice/plan/choose.hpp>

#include <pumice/shared/tile_limits.h>

#include <cstdio>

#include <gtest/gtest.h>

#include <pumice/core/error.hpp>

#include "support/message_of.hpp"

namespace pumice {
namespace {

using test::message_of;

const Target kCpu = target_of(Device{});
const Target kHopper = usual_target(kSm90a);

/// A 3³ layer of a LiDAR network's first level.
ConvolutionProblem lidar_layer() {
  return {.direction = Direction::forward,
          .in_rows = 91767,
          .out_rows = 91767,
          .pairs = 345900,
          .offsets = 27,
          .in_channels = 96,
          .out_channels = 96};
}

TEST(ConvolutionPlan, ASparseLayerFetchesOnDemand) {
  const ConvolutionPlan plan = *choose(lidar_layer(), kCpu);
  EXPECT_EQ(plan.dataflow, Dataflow::fetch_on_demand);
  EXPECT_EQ(plan.name(), "fetch_on_demand/512");
}

TEST(ConvolutionPlan, AFullTableIsAnImplicitProduct) {
  ConvolutionProblem problem = lidar_layer();   // the inverse of a 2³ layer of stride 2
  problem.offsets = 1;
  problem.pairs = problem.out_rows;
  const ConvolutionPlan plan = *choose(problem, kCpu);
  EXPECT_EQ(plan.dataflow, Dataflow::implicit_gemm);
  EXPECT_FALSE(plan.sort_by_mask);
}

TEST(ConvolutionPlan, APointwiseLayerMultipliesRowsWhereTheyLie) {
  ConvolutionProblem problem = lidar_layer();
  problem.offsets = 1;
  problem.pairs = problem.out_rows;
  problem.identity = true;
  const ConvolutionPlan plan = *choose(problem, kCpu);
  EXPECT_EQ(plan.dataflow, Dataflow::fetch_on_demand);
  EXPECT_NE(plan.reason.find("where they lie"), std::string::npos) << plan.reason;
  EXPECT_NE(explain(problem, kCpu, plan).find("not implicit_gemm: a table of one column"),
            std::string::npos);
}

/// Pairs are counted there and not known here.
TEST(ConvolutionPlan, ADeviceKeepsSumsInRegistersUnlessToldOtherwise) {
  ConvolutionProblem problem = lidar_layer();
  problem.pairs = 0;
  const ConvolutionPlan plan = *choose(problem, kHopper);
  EXPECT_EQ(plan.dataflow, Dataflow::implicit_gemm);
  EXPECT_TRUE(plan.sort_by_mask);
  EXPECT_NE(plan.reason.find("registers"), std::string::npos) << plan.reason;
  for (const Dataflow wanted : {Dataflow::fetch_on_demand, Dataflow::gather_gemm_scatter}) {
    const ConvolutionPlan asked = *choose(problem, kHopper, wanted);
    EXPECT_EQ(asked.dataflow, wanted);
    EXPECT_FALSE(asked.sort_by_mask);
    EXPECT_NE(asked.reason.find("would take implicit_gemm"), std::string::npos) << asked.reason;
  }
}

TEST(ConvolutionPlan, ATilesSumsFitHalfACache) {
  for (const std::int64_t channels : {1, 16, 33, 96, 256, 1000}) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      ConvolutionProblem problem = lidar_layer();
      problem.out_rows = 10'000'000;
      problem.out_channels = channels;
      problem.dtype = dtype;
      // The largest power of two that fits, within 64 and 4,096.
      const std::int64_t row = channels * (dtype == DType::f64 ? 8 : 4);
      std::int64_t expected = 4096;
      while (expected > 64 && expected * row > 256 * 1024)
        expected /= 2;
      EXPECT_EQ(choose(problem, kCpu)->tile_rows, expected) << channels << ' ' << name_of(dtype);
    }
  }
}

TEST(ConvolutionPlan, ADeepLevelStillHasManyTiles) {
  ConvolutionProblem problem = lidar_layer();
  problem.out_rows = problem.in_rows = 5900;
  const ConvolutionPlan plan = *choose(problem, kCpu);
  EXPECT_EQ(plan.tile_rows, 128);   // 46 tiles; of 256 rows there would be 23
}

TEST(ConvolutionPlan, TheCallerMayInsist) {
  for (const Dataflow wanted :
       {Dataflow::gather_gemm_scatter, Dataflow::fetch_on_demand, Dataflow::implicit_gemm}) {
    const ConvolutionPlan plan = *choose(lidar_layer(), kCpu, wanted);
    EXPECT_EQ(plan.dataflow, wanted);
    EXPECT_EQ(plan.sort_by_mask, wanted == Dataflow::implicit_gemm);
  }
}

TEST(ConvolutionPlan, NothingAtAllIsAProblemToo) {
  const ConvolutionPlan plan = *choose({}, kCpu);
  EXPECT_EQ(plan.name(), "fetch_on_demand/64");   // the smallest tiles there are
  EXPECT_EQ(ConvolutionProblem{}.fullness(), 0);
  EXPECT_NE(explain({}, kCpu, plan).find("0 -> 0 rows, 0 offsets, 0 pairs"), std::string::npos);
}

TEST(ConvolutionPlan, ExplainsItsChoiceAndTheOthers) {
  const ConvolutionProblem problem = lidar_layer();
  const std::string text = explain(problem, kCpu, *choose(problem, kCpu));
  EXPECT_NE(text.find("91767 -> 91767 rows, 27 offsets, 345900 pairs (3.77 per output"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("96 -> 96 channels, 6.38 GFLOP"), std::string::npos) << text;
  EXPECT_NE(text.find("fetch_on_demand/512: only pairs that exist"), std::string::npos) << text;
  EXPECT_NE(text.find("not implicit_gemm: "), std::string::npos) << text;
  EXPECT_NE(text.find("not gather_gemm_scatter: "), std::string::npos) << text;
}

TEST(ConvolutionPlan, OthersArePredictedBesideThePlanThatIsExplained) {
  const ConvolutionProblem problem = lidar_layer();
  const std::vector<Candidate> all = candidates(problem, kCpu);
  const Candidate& slow = all.back();
  ASSERT_GT(slow.cost, 1.2);
  ASSERT_EQ(all.front().cost, 1);
  const std::string text = explain(problem, kCpu, slow.plan);
  const std::size_t at = text.find("  " + all.front().plan.name() + ' ');
  ASSERT_NE(at, std::string::npos) << text;
  const std::string line = text.substr(at, text.find('\n', at) - at);
  char times[16];
  std::snprintf(times, sizeof times, " %.2f times", 1 / slow.cost);
  EXPECT_NE(line.find(times), std::string::npos) << line;
}

TEST(ConvolutionPlan, AnOverrideSaysWhatTheRulesWouldTake) {
  const ConvolutionProblem problem = lidar_layer();
  const ConvolutionPlan plan = *choose(problem, kCpu, Dataflow::gather_gemm_scatter);
  EXPECT_EQ(plan.reason, "asked for; the rules would take fetch_on_demand");
  EXPECT_NE(explain(problem, kCpu, plan).find("not fetch_on_demand: another was asked for"),
            std::string::npos);
}

TEST(ConvolutionPlan, AGradientOfTheWeightIsASumOverPairs) {
  ConvolutionProblem problem = lidar_layer();
  problem.direction = Direction::weight_gradient;
  const ConvolutionPlan plan = *choose(problem, kCpu);
  EXPECT_EQ(plan.dataflow, Dataflow::sum_over_pairs);
  EXPECT_EQ(plan.name(), "sum_over_pairs");
  const std::string text = explain(problem, kCpu, plan);
  EXPECT_NE(text.find("weight_gradient f32"), std::string::npos) << text;
  EXPECT_NE(text.find("sum_over_pairs: the pairs of each offset are cut into chunks"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("gather_gemm_scatter"), std::string::npos) << text;
}

/// A decoder's block: 256 channels beside 128, whose shortcut takes both.
TEST(ConvolutionPlan, OneKernelReadsSeveralInputsInRowsOfWholePieces) {
  ConvolutionProblem problem = lidar_layer();
  problem.dtype = DType::f16;
  EXPECT_FALSE(choose(problem, kHopper)->fuses_inputs);   // there is one
  problem.shortcut_channels = 384;
  problem.shortcut_second_channels = 128;
  EXPECT_TRUE(choose(problem, kHopper)->fuses_inputs);
  EXPECT_NE(explain(problem, kHopper, *choose(problem, kHopper))
                .find("read by one kernel, where they lie"),
            std::string::npos);
  problem.second_channels = 32;
  EXPECT_TRUE(choose(problem, kHopper)->fuses_inputs);

  const auto is_fused_with = [&](auto&& change) {
    ConvolutionProblem other = problem;
    change(other);
    return choose(other, kHopper)->fuses_inputs;
  };
  EXPECT_FALSE(choose(problem, kCpu)->fuses_inputs);
  EXPECT_FALSE(is_fused_with([](auto& p) { p.groups = 2; }));
  EXPECT_FALSE(is_fused_with([](auto& p) { p.in_channels = 92; }));   // 184 bytes
  EXPECT_FALSE(is_fused_with([](auto& p) { p.second_channels = 28; }));
  EXPECT_FALSE(is_fused_with([](auto& p) { p.shortcut_channels = 380; }));
  EXPECT_FALSE(is_fused_with([](auto& p) { p.shortcut_second_channels = 124; }));
  EXPECT_TRUE(is_fused_with([](auto& p) {
    p.dtype = DType::f32;
    p.in_channels = 92;
    p.second_channels = 28;
  }));
  for (const Dataflow other : {Dataflow::gather_gemm_scatter, Dataflow::fetch_on_demand}) {
    const ConvolutionPlan plan = *choose(problem, kHopper, other);
    EXPECT_FALSE(plan.fuses_inputs);
    EXPECT_NE(explain(problem, kHopper, plan).find("brought together first"), std::string::npos);
  }
}

TEST(ConvolutionPlan, AShortcutIsWorkToo) {
  ConvolutionProblem problem = lidar_layer();
  const double alone = problem.flop();
  problem.shortcut_channels = 128;
  EXPECT_DOUBLE_EQ(problem.flop() - alone, 2.0 * 91767 * 128 * 96);
}

TEST(ConvolutionPlan, WhatCannotBeHadIsRefused) {
  ConvolutionProblem problem = lidar_layer();
  EXPECT_EQ(message_of([&] { choose(problem, kCpu, Dataflow::sum_over_pairs); }),
            "dataflow = sum_over_pairs for a forward pass or an input gradient: choose "
            "gather_gemm_scatter, fetch_on_demand or implicit_gemm");
  problem.direction = Direction::weight_gradient;
  EXPECT_EQ(message_of([&] { choose(problem, kCpu, Dataflow::implicit_gemm); }),
            "dataflow = implicit_gemm: a weight gradient is a sum over pairs and nothing else; "
            "leave the dataflow out");
}

TEST(Dataflow, NamesGoThereAndBack) {
  for (const Dataflow dataflow :
       {Dataflow::gather_gemm_scatter, Dataflow::fetch_on_demand, Dataflow::implicit_gemm}) {
    EXPECT_EQ(parse_dataflow(name_of(dataflow)), dataflow);
  }
  try {
    parse_dataflow("magic");
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "dataflow = \"magic\": choose gather_gemm_scatter, fetch_on_demand or "
                 "implicit_gemm");
  }
}

}   // namespace
}   // namespace pumice
