// What the tuner may choose of calls on one map, layer by layer and for a graph.
#include "ops/tune/network_groups.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/shared/tile_limits.h>
#include <pumice/maps/build.hpp>
#include <pumice/plan/choose.hpp>

#include "ops/ops_support.hpp"

namespace pumice::test {
namespace {

const Target kHopper = usual_target(kSm90a);

/// Layers as those of the finest map of MinkUNet42 at half its widths, where the rules take two
/// heights.
std::vector<OperatorCall> fine_calls() {
  const KernelMapPtr map =
      submanifold_map(chance_set(33, 7), submanifold_window(3, axes(3, 3), axes(3, 1)));
  std::vector<OperatorCall> calls;
  for (const char* text : {"forward f16 4>16 offsets 27", "forward f16 16>16 offsets 27",
                           "forward f16 64>48 offsets 27", "forward f16 48>48 offsets 27"}) {
    ConvolutionProblem problem = parse_problem(text);
    problem.in_rows = problem.out_rows = 31834;
    calls.push_back({problem, choose_by_rules(problem, kHopper), map});
  }
  return calls;
}

std::set<int> untuned_heights(const NetworkGroups& network) {
  std::set<int> heights;
  for (std::size_t d = 0; d < network.own[0].decisions.size(); ++d) {
    const std::size_t untuned = network.groups[0].decisions[d].untuned;
    heights.insert(network.own[0].decisions[d].plans[untuned]->tile->tile_rows);
  }
  return heights;
}

std::vector<std::string> names_of(const std::vector<tune::Setting>& settings) {
  std::vector<std::string> names;
  for (const tune::Setting& setting : settings)
    names.push_back(setting.name);
  return names;
}

TEST(NetworkGroups, LayerByLayerTheRulesAreUntunedAndAnyCutIsAllowed) {
  const NetworkGroups network = groups_of(fine_calls(), kHopper);
  ASSERT_EQ(network.own.size(), 1u);
  EXPECT_EQ(untuned_heights(network).size(), 2u);
  for (std::size_t d = 0; d < network.own[0].decisions.size(); ++d) {
    const NetworkDecision& decision = network.own[0].decisions[d];
    EXPECT_EQ(network.groups[0].decisions[d].untuned, 0u);
    EXPECT_TRUE(decision.plans[0]->runs_like(*choose_by_rules(decision.problem, kHopper)));
  }
  const tune::Group& group = network.groups[0];
  const std::vector<std::string> names = names_of(group.settings);
  EXPECT_EQ(names.back(), "any");
  for (std::size_t i = 0; i + 1 < names.size(); ++i) {
    EXPECT_EQ(names[i].substr(0, 9), "tiles of ");
    EXPECT_EQ(group.settings[i].cuts.size(), 1u) << names[i];
  }
}

TEST(NetworkGroups, OfAGraphTheSharedCutsAreUntunedAndNoChoiceNeedsMoreOfThem) {
  const NetworkGroups network = groups_of(fine_calls(), kHopper, true);
  ASSERT_EQ(network.own.size(), 1u);
  EXPECT_EQ(untuned_heights(network).size(), 1u);
  const tune::Group& group = network.groups[0];
  const std::size_t cuts = cuts_of(group, tune::untuned_choice(group)).size();
  const std::vector<std::string> names = names_of(group.settings);
  EXPECT_EQ(std::count(names.begin(), names.end(), "any"), 0);
  EXPECT_EQ(names.back(), "as the graph cuts");
  for (const tune::Setting& setting : group.settings)
    EXPECT_LE(setting.cuts.size(), cuts) << setting.name;
  for (std::size_t d = 0; d < group.decisions.size(); ++d) {
    const NetworkDecision& decision = network.own[0].decisions[d];
    ASSERT_EQ(decision.plans.size(), group.decisions[d].candidates.size());
    for (std::size_t i = 0; i < decision.plans.size(); ++i)
      EXPECT_EQ(decision.plans[i]->name(), group.decisions[d].candidates[i].name);
  }
}

}   // namespace
}   // namespace pumice::test
