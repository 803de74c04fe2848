// Layers on one map share heights of tiles where a cut costs more than a height that is not the
// best.
#include <pumice/plan/shared_cuts.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/shared/tile_limits.h>
#include <pumice/plan/choose.hpp>

#include "plan/space/device_problem.hpp"

namespace pumice::test {
namespace {

const Target kHopper = usual_target(kSm90a);

LayerOnMap layer(const char* text, std::int64_t rows, int map = 0) {
  ConvolutionProblem problem = parse_problem(text);
  problem.in_rows = problem.out_rows = rows;
  return {problem, map};
}

/// Layers as those of the finest map of MinkUNet42 at half its widths.
std::vector<LayerOnMap> fine_layers(std::int64_t rows) {
  return {layer("forward f16 4>16 offsets 27", rows), layer("forward f16 16>16 offsets 27", rows),
          layer("forward f16 64>48 offsets 27", rows), layer("forward f16 48>48 offsets 27", rows),
          layer("forward f16 48>48 offsets 27", rows)};
}

std::vector<PlanPtr> plans_of(const std::vector<LayerOnMap>& layers, const PlanBook& book) {
  std::vector<PlanPtr> plans;
  for (const LayerOnMap& one : layers)
    plans.push_back(choose(one.problem, kHopper, book));
  return plans;
}

std::set<int> heights_of(const std::vector<PlanPtr>& plans) {
  std::set<int> heights;
  for (const PlanPtr& plan : plans)
    heights.insert(plan->tile->tile_rows);
  return heights;
}

TEST(SharedCuts, AMapOfManyRowsIsCutOnceForItsLayers) {
  const std::vector<LayerOnMap> layers = fine_layers(31834);
  EXPECT_EQ(heights_of(plans_of(layers, {})).size(), 2u);   // by the rules
  const PlanBook book = plans_of_shared_cuts(layers, kHopper);
  const std::vector<PlanPtr> plans = plans_of(layers, book);
  EXPECT_EQ(heights_of(plans).size(), 1u);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const PlanPtr rules = choose_by_rules(layers[i].problem, kHopper);
    EXPECT_EQ(plans[i]->dataflow, rules->dataflow);
    EXPECT_EQ(plans[i]->splits, rules->splits);
    EXPECT_EQ(plans[i]->write, rules->write);
    EXPECT_EQ(plans[i]->sort_by_mask, rules->sort_by_mask);
    check(*plans[i], layers[i].problem, kHopper);
    if (plans[i]->runs_like(*rules)) continue;
    EXPECT_NE(plans[i]->reason.find("other layers on its map"), std::string::npos);
    // What a bundle has: it is picked for other numbers of rows.
    const cuda::TileProblem tiles =
        cuda::tile_problem(layers[i].problem, kHopper, rules->dataflow, rules->write, false);
    const std::vector<TileSpec> bundled = cuda::pickable_tiles(tiles);
    EXPECT_NE(
        std::find(bundled.begin(), bundled.end(), cuda::tile_spec(layers[i].problem, *plans[i])),
        bundled.end());
  }
}

TEST(SharedCuts, LayersOnMapsOfTheirOwnKeepTheirPlans) {
  std::vector<LayerOnMap> layers = fine_layers(31834);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].map = static_cast<int>(i);
    if (i == 4) layers[i].map = 3;   // two layers of one key on one map
  }
  EXPECT_EQ(plans_of_shared_cuts(layers, kHopper).size(), 0u);
}

TEST(SharedCuts, OneHeightOrNoMapLeavesNothingToShare) {
  EXPECT_EQ(plans_of_shared_cuts({}, kHopper).size(), 0u);
  EXPECT_EQ(plans_of_shared_cuts({layer("forward f16 96>96 offsets 27", 91767)}, kHopper).size(),
            0u);
  EXPECT_EQ(plans_of_shared_cuts({layer("forward f16 96>20 offsets 1 identity", 91767),
                                  layer("forward f16 64>64 offsets 27 groups 64", 91767)},
                                 kHopper)
                .size(),
            0u);
  EXPECT_EQ(plans_of_shared_cuts(fine_layers(91767), Target{}).size(), 0u);   // a CPU
}

TEST(SharedCuts, SplitsAndDirectionsStayApart) {
  // Of the second map the tiles of splits are others than whole ones of the same height.
  std::vector<LayerOnMap> layers{layer("forward f32 96>96 offsets 27", 14467),
                                 layer("forward f32 32>8 offsets 27", 14467),
                                 layer("input_gradient f32 96>96 offsets 27", 14467, 1)};
  ASSERT_NE(choose_by_rules(layers[0].problem, kHopper)->splits,
            choose_by_rules(layers[1].problem, kHopper)->splits);
  const PlanBook book = plans_of_shared_cuts(layers, kHopper);
  for (const LayerOnMap& one : layers) {
    const PlanPtr plan = choose(one.problem, kHopper, book);
    EXPECT_EQ(plan->splits, choose_by_rules(one.problem, kHopper)->splits);
  }
  // None of the three has another with which it could share.
  for (const LayerOnMap& one : layers) {
    EXPECT_TRUE(
        choose(one.problem, kHopper, book)->runs_like(*choose_by_rules(one.problem, kHopper)));
  }
}

TEST(SharedCuts, WhatWasMeasuredToBeBetterStays) {
  const std::vector<LayerOnMap> layers = fine_layers(31834);
  Target target = kHopper;
  target.name = "a machine";
  ConvolutionPlan measured = *choose_by_rules(layers[3].problem, target);
  const int height = measured.tile->tile_rows == 64 ? 128 : 64;
  for (const Candidate& one : candidates(layers[3].problem, target)) {
    if (one.plan.dataflow == Dataflow::implicit_gemm && one.plan.splits == 1 &&
        one.plan.sort_by_mask && one.plan.tile->tile_rows == height)
      measured = one.plan;
  }
  ASSERT_EQ(measured.tile->tile_rows, height);
  auto book = std::make_shared<PlanBook>();
  book->set(layers[3].problem, target, std::make_shared<const ConvolutionPlan>(measured));
  const PlanBookScope scope(book);
  const PlanBook shared = plans_of_shared_cuts(layers, target);
  EXPECT_EQ(choose(layers[3].problem, target, shared)->tile->tile_rows, height);
}

TEST(SharedCuts, OtherLevelsKeepTheirs) {
  // The same channels at a quarter of the rows, on a map of their own: a book looks at nearby rows.
  std::vector<LayerOnMap> layers = fine_layers(91767);
  layers.push_back(layer("forward f16 16>16 offsets 27", 31834, 1));
  const PlanBook book = plans_of_shared_cuts(layers, kHopper);
  EXPECT_TRUE(choose(layers.back().problem, kHopper, book)
                  ->runs_like(*choose_by_rules(layers.back().problem, kHopper)));
}

TEST(SharedCuts, ALayerThatTuningLeftAsItWasStillShares) {
  const std::vector<LayerOnMap> layers = fine_layers(31834);
  Target target = kHopper;
  target.name = "a machine";
  auto book = std::make_shared<PlanBook>();
  for (const LayerOnMap& one : layers)
    book->set(one.problem, target, choose_by_rules(one.problem, target));
  const PlanBookScope scope(book);
  const PlanBook shared = plans_of_shared_cuts(layers, target);
  std::set<int> heights;
  for (const LayerOnMap& one : layers)
    heights.insert(choose(one.problem, target, shared)->tile->tile_rows);
  EXPECT_EQ(heights.size(), 1u);
}

TEST(SharedCuts, AreTheSameEveryTime) {
  const std::vector<LayerOnMap> layers = fine_layers(60152);
  const std::vector<PlanPtr> first = plans_of(layers, plans_of_shared_cuts(layers, kHopper));
  for (int i = 0; i < 3; ++i) {
    const std::vector<PlanPtr> again = plans_of(layers, plans_of_shared_cuts(layers, kHopper));
    for (std::size_t k = 0; k < layers.size(); ++k)
      EXPECT_TRUE(again[k]->runs_like(*first[k]));
  }
}

}   // namespace
}   // namespace pumice::test
