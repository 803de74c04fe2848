// Threads by channels, runs by the size of the pattern.
#include "plan/space/entry_schedules.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <pumice/shared/part_spec.h>
#include <pumice/shared/pattern_ref.h>

namespace pumice::cuda {
namespace {

constexpr std::int32_t kWarpLanes = 32;
/// Rows of features that a whole warp has on their way at a time, and teams of it, at the most. On
/// an H200 16 of a warp, four of a team, were within 8 % of the fastest; twice as many took up to
/// 1.2 times as long, half as many up to 1.3 times.
constexpr std::int32_t kWarpRows = 16;
constexpr std::int32_t kMostWays = 8;

std::int64_t channels_of_head(const SparseProblem& problem) {
  return problem.channels / std::max<std::int64_t>(problem.heads, 1);
}

/// The spec with what follows from its schedule, for heads of so many channels.
EdgeMapSpec registers_for(EdgeMapSpec spec, std::int64_t channels) {
  const EntrySchedule& schedule = spec.schedule;
  spec.wide = channels > std::int64_t{schedule.team} * schedule.chunks * entry_chunk(spec.type);
  const bool is_dot = spec.operation == EdgeOperation::dot;
  const bool is_light = is_dot && schedule.chunks == 1 && !spec.wide;
  spec.warps = spec.picked                                    ? 20
               : schedule.ahead > 4 || (spec.wide && !is_dot) ? 24
               : is_light                                     ? 40
                                                              : 32;
  return spec;
}

/// A product that makes a row for each row. Whether entries have numbers, a pattern says.
GatherReduceSpec gather_spec(const SparseProblem& problem, const EntrySchedule& schedule) {
  const ElementType type = row_element(problem.dtype);
  const bool is_forward = problem.direction == SparseDirection::forward;
  const bool headed = problem.weighted && problem.heads > 1;
  return {.type = type,
          .operation = !problem.picks() ? EntryOperation::sum
                       : is_forward     ? EntryOperation::most
                                        : EntryOperation::picked,
          .weighted = problem.weighted,
          .headed = headed,
          .whole_heads = headed && channels_of_head(problem) % entry_chunk(type) == 0,
          .shared = !is_forward && problem.reduction == EntryReduction::mean,
          .schedule = schedule};
}

/// Whether rules take whole warps, which were measured for sums with a weight for each entry or
/// none, and with 32 channels and more.
bool goes_by_warps(const SparseProblem& problem, const EntrySchedule& schedule) {
  const GatherReduceSpec spec = gather_spec(problem, schedule);
  return spec.operation == EntryOperation::sum && !spec.headed && !spec.shared &&
         kWarpLanes / schedule.team <= kMostWays;
}

/// What rules take for a problem that makes a number for each entry.
EdgeMapSpec edge_spec(const SparseProblem& problem) {
  const ElementType type = row_element(problem.dtype);
  const std::int64_t channels = channels_of_head(problem);
  return problem.op == SparseOperator::edge_scores
             ? edge_scores_spec(type, channels, problem.weighted)
             : edge_dot_spec(type, channels, problem.picks());
}

/// A team for each piece, or window, of as many entries as the next.
TeamSchedule teams_of_equal_work(const EntrySchedule& schedule) {
  return {.team = schedule.team,
          .chunks = schedule.chunks,
          .ahead = schedule.ahead,
          .units = 0,
          .part_teams = 0};
}

}   // namespace

EntrySchedule entry_schedule(ElementType type, std::int64_t channels) {
  const std::int64_t chunk = entry_chunk(type);
  const auto lanes =
      static_cast<std::uint64_t>(std::max<std::int64_t>((channels + chunk - 1) / chunk, 1));
  const std::int64_t bytes = channels * element_bytes(type);
  std::int32_t access = 16;
  while (bytes % access != 0)
    access /= 2;
  return {.team = static_cast<std::int32_t>(std::min<std::uint64_t>(std::bit_ceil(lanes), 32)),
          .access = access,
          .ahead = access < 16 ? 2 : 4};
}

EdgeMapSpec edge_dot_spec(ElementType type, std::int64_t channels, bool picked) {
  EdgeMapSpec spec{.type = type, .picked = picked, .schedule = entry_schedule(type, channels)};
  EntrySchedule& schedule = spec.schedule;
  if (channels > kWarpLanes * entry_chunk(type)) schedule.chunks = schedule.ahead = 2;
  // Two entries on their way take 0.94 of the time of four on an H100 in f32 with 32 and 64
  // channels, and more with 128 and in f16.
  if (element_bytes(type) == 4 && schedule.team <= kWarpLanes / 2) schedule.ahead = 2;
  schedule.ahead = std::min(schedule.ahead, schedule.team);
  return registers_for(spec, channels);
}

EdgeMapSpec edge_scores_spec(ElementType type, std::int64_t channels, bool has_entries) {
  EdgeMapSpec spec{.type = type,
                   .operation = EdgeOperation::leaky,
                   .entries = has_entries,
                   .schedule = entry_schedule(type, channels)};
  EntrySchedule& schedule = spec.schedule;
  schedule.ahead = std::min(has_entries ? 2 : schedule.ahead, schedule.team);
  return registers_for(spec, channels);
}

EntrySchedule score_gradient_schedule(ElementType type, std::int64_t channels, bool has_entries) {
  EntrySchedule schedule = entry_schedule(type, channels);
  const int of_entry = entry_chunk(type) * (has_entries ? 2 : 1);
  schedule.ahead = std::max((schedule.access < 16 ? 8 : 16) / of_entry, 1);
  return schedule;
}

double best_run(const SparseProblem& problem, const TeamSchedule& teams,
                std::int64_t multiprocessors) {
  const std::int64_t tile =
      std::int64_t{teams.team} * teams.chunks * entry_chunk(row_element(problem.dtype));
  const std::int64_t tiles = teams.ways == 0 ? 1 : (problem.channels + tile - 1) / tile;
  const std::int64_t waits = units_of_start(teams) * std::max<std::int64_t>(multiprocessors, 1);
  return std::sqrt(static_cast<double>(work_units(problem.rows, problem.entries)) *
                   static_cast<double>(tiles) / static_cast<double>(waits));
}

ElementType row_element(DType dtype) {
  switch (dtype) {
    case DType::f16: return ElementType::f16;
    case DType::bf16: return ElementType::bf16;
    default: return ElementType::f32;
  }
}

TeamSchedule team_schedule(const SparseProblem& problem, const Target& target) {
  if (problem.maps_entries()) return teams_of_equal_work(edge_spec(problem).schedule);
  const EntrySchedule schedule = entry_schedule(row_element(problem.dtype), problem.channels);
  const std::int32_t ways = goes_by_warps(problem, schedule) ? kWarpLanes / schedule.team : 0;
  return row_teams(problem, target, ways);
}

TeamSchedule row_teams(const SparseProblem& problem, const Target& target, std::int32_t ways) {
  const EntrySchedule schedule = entry_schedule(row_element(problem.dtype), problem.channels);
  TeamSchedule teams{.team = schedule.team,
                     .chunks = schedule.chunks,
                     .ahead = schedule.ahead,
                     .part_teams = kPartTeams,
                     .ways = ways};
  if (ways > 0) teams.ahead = std::clamp(kWarpRows / ways, 1, schedule.ahead);
  teams.units = static_cast<std::int32_t>(
      std::clamp(best_run(problem, teams, target.multiprocessors), 1.0, double{kMostUnits}));
  return teams;
}

TeamSchedule teams_over_parts(const SparseProblem& problem) {
  return teams_of_equal_work(
      entry_schedule(row_element(problem.dtype),
                     problem.maps_entries() ? channels_of_head(problem) : problem.channels));
}

EntrySchedule kernel_schedule(ElementType type, std::int64_t channels, const TeamSchedule& teams) {
  return {.team = teams.team,
          .chunks = teams.chunks,
          .access = entry_schedule(type, channels).access,
          .ahead = teams.ahead,
          .ways = teams.ways};
}

EdgeMapSpec planned(EdgeMapSpec spec, std::int64_t channels, const TeamSchedule& teams) {
  spec.schedule = kernel_schedule(spec.type, channels, teams);
  return registers_for(spec, channels);
}

const char* why_invalid(const SparseProblem& problem, const TeamSchedule& teams, bool over_parts) {
  const ElementType type = row_element(problem.dtype);
  if (problem.maps_entries()) {
    const std::int64_t channels = channels_of_head(problem);
    if (over_parts)
      return pumice::why_invalid(
          DotPartsSpec{.type = type, .schedule = kernel_schedule(type, channels, teams)});
    return pumice::why_invalid(planned(edge_spec(problem), channels, teams));
  }
  const GatherReduceSpec spec =
      gather_spec(problem, kernel_schedule(type, problem.channels, teams));
  return over_parts ? pumice::why_invalid(GatherPartsSpec{.reduce = spec})
                    : pumice::why_invalid(spec);
}

}   // namespace pumice::cuda
