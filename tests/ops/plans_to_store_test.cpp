// What is kept of a tuning of scans of several sizes.
#include "ops/tune/plans_to_store.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/plan/plan_book.hpp>

namespace pumice::test {
namespace {

const Target kMachine{.kind = DeviceKind::cuda, .multiprocessors = 132, .name = "a machine"};

ConvolutionProblem layer(std::int64_t rows) {
  ConvolutionProblem problem = parse_problem("forward f16 64>64 offsets 27");
  problem.in_rows = problem.out_rows = rows;
  return problem;
}

PlanPtr plan_of_height(std::int32_t rows) {
  return std::make_shared<const ConvolutionPlan>(ConvolutionPlan{
      .dataflow = Dataflow::implicit_gemm, .tile = TileSchedule{.tile_rows = rows}});
}

OperatorCall call_of(std::int64_t rows) {
  return {.problem = layer(rows), .plan = nullptr, .map = nullptr};
}

/// Layers of one problem on two levels, the first with more rows. In the second scan, which is
/// smaller, the first layer has as many as the second one has in the first scan.
class TwoLevels {
 public:
  TwoLevels() {
    for (const auto& [first, second] : {std::pair(16000, 4000), std::pair(4000, 1000)})
      recorded.calls.push_back({call_of(first), call_of(second)});
    recorded.sparse.resize(2);
    for (const std::size_t i : {0u, 1u}) {
      network.own.push_back(
          {.decisions = {{.problem = recorded.calls[0][i].problem,
                          .calls = {i},
                          .plans = {plan_of_height(64), plan_of_height(128), plan_of_height(256)}}},
           .maps = {}});
      result.assignment.push_back({i + 1});
      tune::GroupReport report;
      report.verdict = tune::Verdict::accepted;
      report.untuned_s = {.median = 2, .samples = 10};
      report.tuned_s = {.median = 1, .samples = 10};
      result.groups.push_back(report);
    }
  }

  std::vector<tune::StoredPlan> kept() const {
    return plans_to_store(recorded, network, result, kMachine, 0.99);
  }
  /// The height of the tile that is kept for so many rows; 0: none.
  std::int32_t height(std::int64_t rows) const {
    const std::vector<tune::StoredPlan> plans = kept();
    const auto found = std::ranges::find_if(plans, [&](const tune::StoredPlan& plan) {
      return plan.key == key_of(layer(rows), kMachine);
    });
    return found == plans.end() ? 0 : parse_plan(found->record.plan).tile->tile_rows;
  }

  RecordedPasses recorded;
  NetworkGroups network;
  tune::Result result;
};

TEST(PlansToStore, a_layer_keeps_the_plan_that_the_network_was_compared_with) {
  const TwoLevels network;
  EXPECT_EQ(network.kept().size(), 3u);
  EXPECT_EQ(network.height(16000), 128);
  EXPECT_EQ(network.height(4000), 256);   // of the second layer, in the first scan
  EXPECT_EQ(network.height(1000), 256);
}

TEST(PlansToStore, nothing_is_kept_of_what_was_not_measured) {
  TwoLevels network;
  network.result.groups[1].verdict = tune::Verdict::not_measured;
  EXPECT_EQ(network.kept().size(), 2u);
  EXPECT_EQ(network.height(4000), 128);
  EXPECT_EQ(network.height(1000), 0);
  network.result.groups[0].verdict = tune::Verdict::refused;
  EXPECT_TRUE(network.kept().empty());
}

TEST(PlansToStore, a_plan_without_a_gain_is_marked_as_measured) {
  TwoLevels network;
  network.result.groups[0].verdict = tune::Verdict::dropped;
  const std::vector<tune::StoredPlan> plans = network.kept();
  EXPECT_EQ(plans.front().record.tuned_s, plans.front().record.untuned_s);
  EXPECT_EQ(plans.front().record.confidence, 0);
  EXPECT_EQ(plans.back().record.tuned_s, 1);
  EXPECT_EQ(plans.back().record.confidence, 0.99);
}

TEST(PlansToStore, calls_that_part_in_another_scan_have_a_plan_each) {
  TwoLevels network;
  network.recorded.calls = {{call_of(16000), call_of(16000)}, {call_of(4000), call_of(1000)}};
  network.network.own.pop_back();
  network.network.own.front().decisions.front().calls = {0, 1};
  EXPECT_EQ(network.kept().size(), 3u);
  EXPECT_EQ(network.height(1000), 128);
}

}   // namespace
}   // namespace pumice::test
