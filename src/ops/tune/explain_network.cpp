// Each distinct problem of a pass, beside what else could run.
#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/ops/tune_network.hpp>
#include <pumice/plan/choose.hpp>
#include <pumice/plan/choose_sparse.hpp>
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

/// All candidates in turns, so that a slow moment falls on each of them. `time(plan)` in seconds.
template <class Plan, class Time> void measure(std::vector<PlanCost<Plan>>& costs, Time&& time) {
  std::vector<std::vector<double>> samples(costs.size());
  for (int round = -1; round < kSamples; ++round) {
    for (std::size_t i = 0; i < costs.size(); ++i) {
      if (!costs[i].refusal.empty()) continue;
      try {
        const double seconds = time(*costs[i].plan);
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

/// Null where something else runs: a plan that does not fit is left out.
template <class Plan>
std::optional<tune::StoredPlan> if_it_runs(std::optional<tune::StoredPlan> stored, const Plan& runs,
                                           Plan (*parse)(std::string_view)) {
  if (!stored) return stored;
  try {
    if (parse(stored->record.plan).runs_like(runs)) return stored;
  } catch (const UserError&) {   // a text that is none, of which `choose` has warned
  }
  return std::nullopt;
}

/// What could run, and what runs.
template <class Plan, class Found>
std::vector<PlanCost<Plan>> costs_of(std::vector<Found> found,
                                     const std::shared_ptr<const Plan>& chosen) {
  std::vector<PlanCost<Plan>> costs;
  bool has_chosen = false;
  for (Found& one : found) {
    has_chosen = has_chosen || one.plan.runs_like(*chosen);
    costs.push_back(
        {.plan = std::make_shared<const Plan>(std::move(one.plan)), .predicted = one.cost});
  }
  if (!has_chosen) costs.push_back({.plan = chosen, .predicted = 0});
  return costs;
}

}   // namespace

ExplainedNetwork explain_network(const NetworkPasses& passes, bool measures) {
  check_can_wait(passes.stream);
  const Target& target = target_of(passes.stream.device);
  NetworkPasses first = passes;
  first.scans = 1;
  const RecordedPasses recorded = recorded_passes(first);
  const std::vector<OperatorCall>& calls = recorded.calls.front();
  NetworkGroups network = groups_of(calls, target);
  add_sparse_groups(network, recorded.sparse.front(), target);
  GroupStopwatch watch(recorded, network, passes.stream);
  std::map<std::size_t, ExplainedLayer> layers;   // by the first call of each
  for (const NetworkGroup& group : network.own) {
    for (const NetworkDecision& decision : group.decisions) {
      const std::size_t call = decision.calls.front();
      ExplainedLayer layer{.problem = decision.problem,
                           .calls = static_cast<int>(decision.calls.size()),
                           .plan = calls[call].plan,
                           .stored = if_it_runs(stored_plan(decision.problem, target),
                                                *calls[call].plan, &parse_plan)};
      layer.candidates = costs_of(candidates(decision.problem, target), layer.plan);
      if (measures)
        measure(layer.candidates, [&](const auto& plan) { return watch.of_call(call, plan); });
      layers.emplace(call, std::move(layer));
    }
  }
  ExplainedNetwork result;
  for (auto& [call, layer] : layers)
    result.layers.push_back(std::move(layer));
  for (const SparseDecision& decision : network.sparse) {
    const std::size_t call = decision.calls.front();
    ExplainedProduct product{
        .problem = decision.problem,
        .calls = static_cast<int>(decision.calls.size()),
        .plan = recorded.sparse.front()[call].plan,
        .stored = if_it_runs(stored_plan(decision.problem, target),
                             *recorded.sparse.front()[call].plan, &parse_sparse_plan)};
    product.candidates = costs_of(candidates(decision.problem, target), product.plan);
    if (measures) {
      measure(product.candidates,
              [&](const auto& plan) { return watch.of_sparse_call(call, plan); });
    }
    result.products.push_back(std::move(product));
  }
  return result;
}

}   // namespace pumice
