// Schedules of kernels over the entries of a sparse matrix: those that rules take, and what follows
// from channels and types alone.
#pragma once

#include <cstdint>

#include <pumice/shared/entry_spec.h>
#include <pumice/plan/sparse_plan.hpp>
#include <pumice/plan/sparse_problem.hpp>
#include <pumice/plan/target.hpp>

namespace pumice::cuda {

/// How `channels` of a head are shared out: threads enough for one chunk each, up to a warp's.
EntrySchedule entry_schedule(ElementType type, std::int64_t channels);
/// How products of rows are computed whose heads have so many channels, of which two rows are read
/// for an entry.
EdgeMapSpec edge_dot_spec(ElementType type, std::int64_t channels, bool picked);
/// Of additive attention and of what comes back through it; has_entries: rows of entries are added.
EdgeMapSpec edge_scores_spec(ElementType type, std::int64_t channels, bool has_entries);
EntrySchedule score_gradient_schedule(ElementType type, std::int64_t channels, bool has_entries);

/// What decides how long a run is: starting one of a team costs as much as so many units of a
/// multiprocessor wait for the last one. Of 0.2, 1.3 and 11.4 million rows and entries 2 to 4, 8
/// and 16 to 32 units were the fastest on an H100, for 32 to 512 channels alike.
inline constexpr std::int64_t kUnitsOfStart = 32;
/// The same of a run of a warp, which is started for each tile of channels. Of 0.2 and 1.3 million
/// rows and entries 2 to 4 and 12 to 24 units were the fastest on an H200 with one tile, 4 to 8 and
/// 24 with four.
inline constexpr std::int64_t kUnitsOfWarpStart = 12;

constexpr std::int64_t units_of_start(const TeamSchedule& teams) {
  return teams.ways == 0 ? kUnitsOfStart : kUnitsOfWarpStart;
}
/// How many units a run has at best: the longer, the fewer are started; the shorter, the less the
/// last one is waited for. The root of what there is.
double best_run(const SparseProblem& problem, const TeamSchedule& teams,
                std::int64_t multiprocessors);

inline constexpr std::int32_t kMostUnits = 64;
/// Teams of a multiprocessor that take parts of long rows; they walk on.
inline constexpr std::int32_t kPartTeams = 32;

/// What rows are stored as; f32 for types that a device does not take.
ElementType row_element(DType dtype);
/// That rules take.
TeamSchedule team_schedule(const SparseProblem& problem, const Target& target);
/// What they would take of a product that makes a row for each row, with `ways` teams of a warp
/// together, or 0: each by itself.
TeamSchedule row_teams(const SparseProblem& problem, const Target& target, std::int32_t ways);
/// What they would take of a product over parts, whose pieces are as long as each other: a team
/// for each.
TeamSchedule teams_over_parts(const SparseProblem& problem);
/// With how rows are read, which follows from their `channels`, or those of a head where a team
/// goes over one.
EntrySchedule kernel_schedule(ElementType type, std::int64_t channels, const TeamSchedule& teams);
/// The same products by a plan: with its schedule, and what follows from that.
EdgeMapSpec planned(EdgeMapSpec spec, std::int64_t channels, const TeamSchedule& teams);
/// Null, or why no kernel can be built; over_parts: of a pattern that is cut.
const char* why_invalid(const SparseProblem& problem, const TeamSchedule& teams,
                        bool over_parts = false);

}   // namespace pumice::cuda
