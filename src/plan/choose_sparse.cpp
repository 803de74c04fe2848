// The rules: a pattern is not cut into another format. On the CPU nothing that was measured gains
// by it (docs/decisions/0014-composable-formats.md); a device gains with few channels only, and
// waits for each cut, which is worth it for graphs that stay: there the tuner decides. What is left
// is how rows are shared out.
#include <pumice/plan/choose_sparse.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <pumice/shared/pattern_ref.h>

#include <fmt/format.h>

#include "formats/cut_checks.hpp"
#include "plan/measured_choices.hpp"
#include "plan/space/entry_schedules.hpp"

namespace pumice {
namespace {

constexpr const char* kCpuRowsReason =
    "rows are summed where they lie, in ranges of about as much work: parts of regular shape would "
    "have to be brought together for each row first";
constexpr const char* kCpuEntriesReason =
    "the row on the left stays in cache while the entries of a row pass by, in ranges of about as "
    "much work";
constexpr const char* kDeviceRowsReason =
    "teams take runs of rows, as long as starting one costs what waiting for the last of them "
    "does; long rows are cut into parts";
constexpr const char* kDeviceWarpsReason =
    "whole warps take runs of rows, whose columns and weights they read 32 at a time, as long as "
    "starting one costs what waiting for the last of them does; long rows are cut into parts";
constexpr const char* kDeviceEntriesReason =
    "a warp takes 32 rows and entries beside each other, so that no row is waited for, and its "
    "teams an entry at a time";

/// On the CPU there is one plan for each skeleton, made once. It stays, so that nobody counts who
/// has it: rows of a small product are summed in 300 ns.
SparsePlanPtr cpu_plan(const char* reason) {
  const auto* const made = new SparsePlan{.ranges = RangeSchedule{}, .reason = reason};
  return SparsePlanPtr(SparsePlanPtr(), made);
}

/// What a plan that was measured for another pattern, of about as many rows and entries, cannot do
/// with this one; empty: nothing.
std::string why_unsuited(const SparsePlan& plan, const SparseProblem& problem,
                         const Target& target) {
  if (plan.format != SparseFormat::csr && !can_cut(problem, target))
    return fmt::format("{} entries are too many to be cut", problem.entries);
  // On a device nobody counts rows: as many lines as there can be.
  if (plan.format == SparseFormat::ell && (problem.lengths != nullptr || target.on_device())) {
    const std::int64_t lines =
        problem.lengths != nullptr
            ? problem.lengths->lines(plan.width)
            : std::min(problem.rows, problem.entries) + problem.entries / plan.width;
    const std::int64_t most = kMostPositionsOfEntry * problem.entries / plan.width;
    if (lines > most)
      return fmt::format("{} lines of this pattern would be nearly all padding", lines);
  }
  const bool is_whole = plan.format == SparseFormat::csr && plan.teams &&
                        plan.teams->part_teams == 0 && !problem.maps_entries();
  if (is_whole && problem.entries > kMostWholeRow)
    return fmt::format("rows of {} entries together are too long to stay whole", problem.entries);
  return {};
}

}   // namespace

SparsePlanPtr choose_by_rules(const SparseProblem& problem, const Target& target) {
  if (!target.on_device()) {
    static const SparsePlanPtr rows = cpu_plan(kCpuRowsReason);
    static const SparsePlanPtr entries = cpu_plan(kCpuEntriesReason);
    return problem.maps_entries() ? entries : rows;
  }
  SparsePlan plan{.teams = cuda::team_schedule(problem, target)};
  plan.reason = problem.maps_entries() ? kDeviceEntriesReason
                : plan.teams->ways > 0 ? kDeviceWarpsReason
                                       : kDeviceRowsReason;
  return std::make_shared<const SparsePlan>(std::move(plan));
}

SparsePlanPtr choose(const SparseProblem& problem, const Target& target) {
  SparsePlanPtr measured = measured_choice(problem, target);
  if (measured == nullptr) return choose_by_rules(problem, target);
  const std::string why = why_unsuited(*measured, problem, target);
  if (why.empty()) return measured;
  SparsePlan ruled = *choose_by_rules(problem, target);
  ruled.reason = fmt::format("{} was measured for another pattern, and {}; by the rules: {}",
                             measured->name(), why, ruled.reason);
  return std::make_shared<const SparsePlan>(std::move(ruled));
}

bool can_cut(const SparseProblem& problem, const Target& target) {
  if (problem.op == SparseOperator::edge_scores) return false;
  const bool is_forward = problem.direction == SparseDirection::forward;
  if (!target.on_device()) return is_forward || !problem.picks();
  return problem.entries <= kMostItemsOfCut &&
         (is_forward || problem.reduction == EntryReduction::sum);
}

}   // namespace pumice
