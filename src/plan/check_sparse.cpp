// What is wrong with a plan of a sparse product that somebody gives.
#include <bit>

#include <pumice/shared/pattern_ref.h>
#include <pumice/core/error.hpp>
#include <pumice/plan/choose_sparse.hpp>

#include "plan/space/entry_schedules.hpp"

namespace pumice {
namespace {

constexpr std::int64_t kMostWork = std::int64_t{1} << 40;
constexpr std::int32_t kMostAhead = 1024;
constexpr std::int32_t kMostTeams = 1024;   // of a multiprocessor
constexpr std::int64_t kMostWidth = std::int64_t{1} << 30;
constexpr std::int64_t kMostColumnParts = 4096;

void check_format(const SparsePlan& plan, const SparseProblem& problem, const Target& target) {
  const bool cuts = plan.format != SparseFormat::csr;
  PUMICE_EXPECTS(cuts || (plan.width == 0 && plan.column_parts == 1), "plan ", plan.name(),
                 ": csr has neither a width nor column parts; leave them out");
  if (!cuts) return;
  PUMICE_EXPECTS(can_cut(problem, target), "plan ", plan.name(), " for a ", to_text(problem), ' ',
                 target.on_device() ? "on a device" : "on the CPU",
                 ": such a product does not go over parts; give format csr");
  PUMICE_EXPECTS(plan.width >= 1 && plan.width <= kMostWidth, "plan ", plan.name(),
                 ": width = ", plan.width, ": give 1 to ", kMostWidth, ", as 32");
  if (plan.format == SparseFormat::ell) {
    PUMICE_EXPECTS(plan.column_parts == 1, "plan ", plan.name(), ": ell has no column parts; ",
                   "leave column_parts out, or give format hyb");
    return;
  }
  PUMICE_EXPECTS(std::has_single_bit(static_cast<std::uint64_t>(plan.width)), "plan ", plan.name(),
                 ": the widest part of hyb is a power of 2; give one, as 16");
  PUMICE_EXPECTS(plan.column_parts >= 1 && plan.column_parts <= kMostColumnParts, "plan ",
                 plan.name(), ": column_parts = ", plan.column_parts, ": give 1 to ",
                 kMostColumnParts);
}

void check_teams(const SparsePlan& plan, const SparseProblem& problem) {
  const TeamSchedule& teams = *plan.teams;
  const bool cuts = plan.format != SparseFormat::csr;
  const bool takes_rows = !cuts && !problem.maps_entries();
  PUMICE_EXPECTS(takes_rows || (teams.ways == 0 && teams.units == 0 && teams.part_teams == 0),
                 "plan ", plan.name(), " for a ", to_text(problem), ": its teams take ",
                 cuts ? "pieces of lines" : "windows of entries, of whatever rows",
                 "; give ways 0, units 0 and part_teams 0");
  const char* const why = cuda::why_invalid(problem, teams, cuts);
  PUMICE_EXPECTS(why == nullptr, "plan ", plan.name(), " has no kernel: ", why,
                 "; give one of candidates() of this problem");
  if (!takes_rows) return;
  PUMICE_EXPECTS(teams.units >= 0 && teams.units <= cuda::kMostUnits, "plan ", plan.name(),
                 ": units = ", teams.units, ": give 0 to ", cuda::kMostUnits);
  PUMICE_EXPECTS(teams.part_teams >= 0 && teams.part_teams <= kMostTeams, "plan ", plan.name(),
                 ": part_teams = ", teams.part_teams, ": give 0 to ", kMostTeams);
  PUMICE_EXPECTS(teams.part_teams > 0 || problem.entries <= kMostWholeRow, "plan ", plan.name(),
                 ": rows of ", problem.entries,
                 " entries together are too long to stay whole; give part_teams 32");
}

}   // namespace

void check(const SparsePlan& plan, const SparseProblem& problem, const Target& target) {
  PUMICE_EXPECTS(
      plan.teams.has_value() == target.on_device() && plan.ranges.has_value() != target.on_device(),
      "plan ", plan.name(), " for a product on ",
      target.on_device() ? "a device: it has teams, and no ranges"
                         : "the CPU: it has ranges, and no teams",
      "; give one of candidates() of this problem");
  check_format(plan, problem, target);
  if (target.on_device()) return check_teams(plan, problem);
  PUMICE_EXPECTS(plan.ranges->work >= 1 && plan.ranges->work <= kMostWork, "plan ", plan.name(),
                 ": work = ", plan.ranges->work, ": give 1 to ", kMostWork, ", as 65536");
  PUMICE_EXPECTS(plan.ranges->ahead >= 1 && plan.ranges->ahead <= kMostAhead, "plan ", plan.name(),
                 ": ahead = ", plan.ranges->ahead, ": give 1 to ", kMostAhead, ", as 8");
}

}   // namespace pumice
