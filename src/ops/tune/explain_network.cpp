// Each distinct problem of a pass, beside what else could run.
#include <algorithm>
#include <exception>
#include <map>
#include <string>
#include <utility>

#include <pumice/core/stream.hpp>
#include <pumice/ops/tune_network.hpp>
#include <pumice/plan/choose.hpp>
#include <pumice/plan/plan_book.hpp>

#include "ops/tune/group_stopwatch.hpp"
#include "ops/tune/network_groups.hpp"
#include "ops/tune/recorded_passes.hpp"

namespace pumice {
namespace {

constexpr int kSamples = 15;   // a median of which seven may be disturbed

double median(std::vector<double> samples) {
  const auto middle = samples.begin() + std::ssize(samples) / 2;
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

/// All candidates in turns, so that a slow moment falls on each of them.
void measure(GroupStopwatch& watch, std::size_t call, std::vector<CandidateCost>& costs) {
  std::vector<std::vector<double>> samples(costs.size());
  for (int round = -1; round < kSamples; ++round) {
    for (std::size_t i = 0; i < costs.size(); ++i) {
      if (!costs[i].refusal.empty()) continue;
      try {
        const double seconds = watch.of_call(call, *costs[i].plan);
        if (round >= 0) samples[i].push_back(seconds);   // the first one compiles and cuts
      } catch (const std::exception& error) {
        costs[i].refusal = error.what();
      }
    }
  }
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (costs[i].refusal.empty()) costs[i].measured_s = median(std::move(samples[i]));
  }
}

}   // namespace

std::vector<ExplainedLayer> explain_network(const NetworkPasses& passes, bool measures) {
  check_can_wait(passes.stream);
  const Target& target = target_of(passes.stream.device);
  NetworkPasses first = passes;
  first.scans = 1;
  const auto calls = recorded_passes(first);
  const NetworkGroups network = groups_of(calls.front(), target);
  GroupStopwatch watch(calls, network, passes.stream);
  std::map<std::size_t, ExplainedLayer> layers;   // by the first call of each
  for (const NetworkGroup& group : network.own) {
    for (const NetworkDecision& decision : group.decisions) {
      const std::size_t call = decision.calls.front();
      ExplainedLayer layer{.problem = decision.problem,
                           .calls = static_cast<int>(decision.calls.size()),
                           .plan = calls.front()[call].plan,
                           .stored = stored_plan(decision.problem, target)};
      for (Candidate& one : candidates(decision.problem, target)) {
        layer.candidates.push_back(
            {.plan = std::make_shared<const ConvolutionPlan>(std::move(one.plan)),
             .predicted = one.cost});
      }
      const bool has_chosen =
          std::any_of(layer.candidates.begin(), layer.candidates.end(),
                      [&](const CandidateCost& one) { return one.plan->runs_like(*layer.plan); });
      if (!has_chosen) layer.candidates.push_back({.plan = layer.plan, .predicted = 0});
      if (measures) measure(watch, call, layer.candidates);
      layers.emplace(call, std::move(layer));
    }
  }
  std::vector<ExplainedLayer> result;
  for (auto& [call, layer] : layers)
    result.push_back(std::move(layer));
  return result;
}

}   // namespace pumice
