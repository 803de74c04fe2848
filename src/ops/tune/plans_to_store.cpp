// Groups that were measured, scan by scan.
#include "ops/tune/plans_to_store.hpp"

#include <set>
#include <string>
#include <utility>

#include <pumice/plan/plan_book.hpp>

#include "plan/store/plan_rules.hpp"

namespace pumice {
namespace {

bool was_measured(const tune::GroupReport& report) {
  return report.verdict != tune::Verdict::refused &&
         report.verdict != tune::Verdict::not_measured && report.untuned_s.samples > 0;
}

/// What to store of a group: without a gain the untuned plan, in place of one that was measured
/// before.
template <class Plan>
tune::PlanRecord record_of(const tune::GroupReport& report, const Plan& plan, double confidence) {
  const bool gains = report.verdict == tune::Verdict::accepted && report.tuned_s.samples > 0;
  return {.plan = to_text(plan),
          .tuned_s = gains ? report.tuned_s.median : report.untuned_s.median,
          .untuned_s = report.untuned_s.median,
          .confidence = gains ? confidence : 0,
          .samples = gains ? report.tuned_s.samples : report.untuned_s.samples,
          .measured_ms = tune::now_ms()};
}

/// What was measured, once for each key.
class PlansToStore {
 public:
  PlansToStore(const tune::Result& result, double confidence)
      : result_(result), confidence_(confidence) {}

  template <class Plan> void add(tune::PlanKey key, std::size_t group, const Plan& plan) {
    const std::string name = key.problem + "/" + std::to_string(key.rows_bucket) + "/" +
                             std::to_string(key.density_bucket.value_or(-1000));
    if (!known_.insert(name).second) return;
    plans_.push_back({std::move(key), record_of(result_.groups[group], plan, confidence_)});
  }
  std::vector<tune::StoredPlan> take() && { return std::move(plans_); }

 private:
  const tune::Result& result_;
  double confidence_;
  std::set<std::string> known_;
  std::vector<tune::StoredPlan> plans_;
};

}   // namespace

std::vector<tune::StoredPlan> plans_to_store(const RecordedPasses& recorded,
                                             const NetworkGroups& network,
                                             const tune::Result& result, const Target& target,
                                             double confidence) {
  PlansToStore plans(result, confidence);
  // Sizes of other scans may lie in other buckets. Those of the first scan are what decisions are
  // named by and what the network was compared with, so that they come first: another layer has
  // such a size in a later scan perhaps.
  for (std::size_t scan = 0; scan < recorded.calls.size(); ++scan) {
    for (std::size_t g = 0; g < network.own.size(); ++g) {
      if (!was_measured(result.groups[g])) continue;
      for (std::size_t d = 0; d < network.own[g].decisions.size(); ++d) {
        const NetworkDecision& decision = network.own[g].decisions[d];
        const ConvolutionPlan& plan = *decision.plans[result.assignment[g][d]];
        for (const std::size_t call : decision.calls)
          plans.add(key_of(recorded.calls[scan][call].problem, target), g, plan);
      }
    }
    for (std::size_t i = 0; i < network.sparse.size(); ++i) {
      const std::size_t g = network.own.size() + i;
      if (!was_measured(result.groups[g])) continue;
      const SparseDecision& decision = network.sparse[i];
      const SparsePlan& plan = *decision.plans[result.assignment[g].front()];
      for (const std::size_t call : decision.calls)
        plans.add(key_of(recorded.sparse[scan][call].problem, target), g, plan);
    }
  }
  return std::move(plans).take();
}

}   // namespace pumice
