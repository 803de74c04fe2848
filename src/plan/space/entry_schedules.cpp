// Threads by channels, runs by the size of the pattern.
#include "plan/space/entry_schedules.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <pumice/shared/pattern_ref.h>

namespace pumice::cuda {
namespace {

constexpr std::int32_t kWarpLanes = 32;

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

/// What rules take for a problem that makes a number for each entry.
EdgeMapSpec edge_spec(const SparseProblem& problem) {
  const ElementType type = row_element(problem.dtype);
  const std::int64_t channels = channels_of_head(problem);
  return problem.op == SparseOperator::edge_scores
             ? edge_scores_spec(type, channels, problem.weighted)
             : edge_dot_spec(type, channels, problem.picks());
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

std::int32_t units_of_run(std::int64_t rows, std::int64_t entries, std::int64_t multiprocessors) {
  const auto units = static_cast<double>(work_units(rows, entries));
  const double best = std::sqrt(
      units / static_cast<double>(kUnitsOfStart * std::max<std::int64_t>(multiprocessors, 1)));
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(static_cast<std::int64_t>(best), 1, kMostUnits));
}

ElementType row_element(DType dtype) {
  switch (dtype) {
    case DType::f16: return ElementType::f16;
    case DType::bf16: return ElementType::bf16;
    default: return ElementType::f32;
  }
}

TeamSchedule team_schedule(const SparseProblem& problem, const Target& target) {
  if (problem.maps_entries()) {
    const EntrySchedule schedule = edge_spec(problem).schedule;
    return {.team = schedule.team,
            .chunks = schedule.chunks,
            .ahead = schedule.ahead,
            .units = 0,
            .part_teams = 0};
  }
  const EntrySchedule schedule = entry_schedule(row_element(problem.dtype), problem.channels);
  return {.team = schedule.team,
          .chunks = schedule.chunks,
          .ahead = schedule.ahead,
          .units = units_of_run(problem.rows, problem.entries, target.multiprocessors),
          .part_teams = kPartTeams};
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

const char* why_invalid(const SparseProblem& problem, const TeamSchedule& teams) {
  if (problem.maps_entries())
    return pumice::why_invalid(planned(edge_spec(problem), channels_of_head(problem), teams));
  const ElementType type = row_element(problem.dtype);
  const bool is_forward = problem.direction == SparseDirection::forward;
  return pumice::why_invalid(
      GatherReduceSpec{.type = type,
                       .operation = !problem.picks() ? EntryOperation::sum
                                    : is_forward     ? EntryOperation::most
                                                     : EntryOperation::picked,
                       .schedule = kernel_schedule(type, problem.channels, teams)});
}

}   // namespace pumice::cuda
