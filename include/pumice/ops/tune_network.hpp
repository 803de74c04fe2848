// From a network and scans to plans that are fastest on this machine: where the tuner, which knows
// no kernels, meets them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pumice/ops/operator_calls.hpp>
#include <pumice/plan/store.hpp>
#include <pumice/plan/tuner.hpp>

namespace pumice {

/// A network as the tuner sees it.
struct NetworkPasses {
  /// Runs everything over one scan, coordinates and maps made anew: the forward pass, and where
  /// training is tuned the backward pass. It calls the same layers for each scan. Work on a device
  /// is enqueued on `stream` and need not be done when this returns.
  std::function<void(int scan)> run;
  /// What is compared from end to end, where that is something else, as a graph of the same pass.
  std::function<void(int scan)> whole{};
  /// `whole` is a graph that plans its layers together and cuts all maps at once
  /// (pumice/plan/shared_cuts.hpp). Then its plans are the untuned ones, a group's time is that of
  /// its layers without cutting, and no choice needs more cuts of a map than it has untuned.
  bool plans_together = false;
  int scans = 1;
  StreamView stream{};
};

/// Calls of one problem, which share a plan.
struct TunedLayer {
  ConvolutionProblem problem;   // of the first scan
  int calls = 0;                // of it, in one pass
  PlanPtr untuned;
  PlanPtr plan;
  std::size_t group = 0;      // of tune::Result::groups, and there
  std::size_t decision = 0;   // one of DecisionReport
};

/// Products of a sparse matrix of one key, which share a plan.
struct TunedProduct {
  SparseProblem problem;   // of the first scan
  int calls = 0;           // of it, in one pass
  SparsePlanPtr untuned;
  SparsePlanPtr plan;
  std::size_t group = 0;      // of tune::Result::groups
  std::size_t decision = 0;   // one of DecisionReport, there
};

struct NetworkTuning {
  tune::Result result;
  std::vector<TunedLayer> layers;
  std::vector<TunedProduct> products{};
  /// What was measured, for the buckets of all scans: what goes into a store or a table.
  std::vector<tune::StoredPlan> plans{};
  std::int64_t stored = 0;    // of them, plans that were written into the store
  std::string not_stored{};   // why they were not; empty where they were, or nothing was to be

  /// Times by group, then what changed and why, in a table of words.
  std::string to_text() const;
  /// All of it, with every candidate.
  std::string to_json() const;
};

/// Seconds that tuning may take where nobody says: 60 on a device, whose passes take milliseconds,
/// and 300 on the CPU, where one of MinkUNet42 takes seconds on two cores.
double usual_budget_s(Device device);

/// Measures the candidates of each layer and stores the winners, which every later run on such a
/// machine uses. What is stored now is not used while it measures: untuned means by rules alone,
/// or what a graph makes of them.
/// Nothing else should run on the device in the meantime.
///
/// `store` null: nothing is kept. UserError where another tuning goes on in this process, where a
/// stream is being captured, where there are no scans, and where scans run different layers.
NetworkTuning tune_network(const NetworkPasses& passes, const tune::Options& options = {},
                           tune::PlanStore* store = &tune::process_plans());

/// What could run in place of a layer.
template <class Plan> struct PlanCost {
  std::shared_ptr<const Plan> plan;
  double predicted = 1;                 // time, in parts of the first one's
  std::optional<double> measured_s{};   // median of a call alone, on a structure that is cut
  std::string refusal{};                // why it could not be measured
};

template <class Problem, class Plan> struct ExplainedCall {
  Problem problem;
  int calls = 0;
  std::shared_ptr<const Plan> plan;   // that runs
  std::optional<tune::StoredPlan> stored{};
  std::vector<PlanCost<Plan>> candidates{};
};

using CandidateCost = PlanCost<ConvolutionPlan>;
using ExplainedLayer = ExplainedCall<ConvolutionProblem, ConvolutionPlan>;
using ExplainedProduct = ExplainedCall<SparseProblem, SparsePlan>;

struct ExplainedNetwork {
  std::vector<ExplainedLayer> layers;
  std::vector<ExplainedProduct> products;   // of sparse matrices
};

/// The distinct problems of a pass over the first scan, in their order, and what could run. Where
/// `measures` is set every candidate is timed.
ExplainedNetwork explain_network(const NetworkPasses& passes, bool measures = false);
/// As a table of words, and for machines: one list, products behind layers.
std::string to_text(const ExplainedNetwork& network);
std::string to_json(const ExplainedNetwork& network);

}   // namespace pumice
