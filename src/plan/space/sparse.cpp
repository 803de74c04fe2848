// The design space of a sparse product: format × how rows are shared out × how far ahead rows of
// features are asked for. Costs are predictions, in bytes that are moved or could have been: they
// order the space and choose nothing.
#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <set>

#include <pumice/shared/pattern_ref.h>
#include <pumice/plan/choose.hpp>
#include <pumice/plan/choose_sparse.hpp>

#include "formats/cut_checks.hpp"
#include "plan/space/entry_schedules.hpp"

namespace pumice {
namespace {

// Of a line and of a slot of parts, on the CPU: fitted to ell and hyb beside csr, f32 with weights,
// 32 to 512 channels, on a power law of 1.16 million entries (docs/decisions/0014).
constexpr double kLineBytes = 150;
constexpr double kSlotBytes = 12;
constexpr double kRowBytes = 30;       // bounds, and what a row begins with
constexpr double kEntryBytes = 12;     // its column, and its number or value
constexpr double kRangeBytes = 3000;   // of a range that a thread begins
/// What a run that is begun costs on a device: three reads that wait for each other.
constexpr double kRunBytes = 64;
constexpr double kWindow =
    32;   // rows and entries that a warp takes, which makes a number for each
constexpr std::int32_t kWarpLanes = 32;
/// Of an entry of the longest row, where one team is at it alone: its rows arrive in 600 ns, and
/// the device moves 3 bytes in a picosecond.
constexpr double kWaitBytes = 600.0 * 3000.0;

double total(std::int64_t number) {
  return static_cast<double>(number);
}

double row_bytes(const SparseProblem& problem) {
  return total(problem.channels) * static_cast<double>(size_of(problem.dtype));
}

/// What any plan moves, were nothing kept in caches.
double moved_bytes(const SparseProblem& problem) {
  const double made = problem.maps_entries()
                          ? total(problem.heads) * static_cast<double>(size_of(problem.dtype))
                          : 0.0;
  return total(problem.entries) * (kEntryBytes + row_bytes(problem) + made) +
         total(problem.rows) * (kRowBytes + row_bytes(problem));
}

/// Where nobody counted, all rows are as long as the mean.
RowLengths lengths_of(const SparseProblem& problem) {
  if (problem.lengths != nullptr) return *problem.lengths;
  RowLengths lengths;
  const auto mean = static_cast<std::int64_t>(std::ceil(problem.entries_per_row()));
  lengths.rows[length_bucket(mean)] = problem.rows;
  lengths.longest = mean;
  return lengths;
}

double mean_of_filled(const SparseProblem& problem, const RowLengths& lengths) {
  return total(problem.entries) / total(std::max<std::int64_t>(lengths.rows_with_entries(), 1));
}

/// Lines and slots of a cut.
struct Cut {
  double lines = 0;
  double slots = 0;
};

Cut cut_of(const SparsePlan& plan, const RowLengths& lengths) {
  if (plan.format == SparseFormat::ell)
    return {total(lengths.lines(plan.width)), total(lengths.slots_of_lines(plan.width))};
  Cut cut;   // of hyb: a row of a bucket is in the part of that width, longer ones in the widest
  for (std::size_t bucket = 1; bucket < RowLengths::kBuckets; ++bucket) {
    if (lengths.rows[bucket] == 0) continue;
    const double most = std::min(std::exp2(static_cast<double>(bucket - 1)),
                                 total(std::max<std::int64_t>(lengths.longest, 1)));
    const double width =
        std::min(std::exp2(std::ceil(std::log2(most))), static_cast<double>(plan.width));
    const double lines = total(lengths.rows[bucket]) * std::ceil(most / width);
    cut.lines += lines;
    cut.slots += lines * width;
  }
  cut.lines *= total(plan.column_parts);   // a row has entries in all of them
  return cut;
}

/// Of rows of features that do not stay in cache, how much longer they are waited for.
double ahead_factor(const SparseProblem& problem, const Target& target, std::int32_t ahead) {
  if (total(problem.columns) * row_bytes(problem) < total(target.l2_bytes)) return 1;
  return ahead < 8 ? 1.1 : ahead == 8 ? 1.0 : 1.02;
}

double cost_on_cpu(const SparsePlan& plan, const SparseProblem& problem, const Target& target,
                   const RowLengths& lengths) {
  const double cores = std::max(1, target.cores);
  double bytes = moved_bytes(problem);
  if (plan.format == SparseFormat::csr) {
    bytes *= ahead_factor(problem, target, plan.ranges->ahead);
  } else {
    const Cut cut = cut_of(plan, lengths);
    bytes += kLineBytes * cut.lines + kSlotBytes * cut.slots;
  }
  const double work =
      total(problem.entries + problem.rows) * total(std::max<std::int64_t>(problem.channels, 1));
  const double ranges =
      std::clamp(work / total(plan.ranges->work), 1.0, std::max(total(problem.rows), 1.0));
  const double at_once = std::min(cores, ranges);
  const double waits = bytes / ranges / 2;   // for the last one
  return (bytes + kRangeBytes * ranges) / at_once + waits;
}

/// How long a product over parts takes beside one of teams over rows: hyb on an H200, two power
/// laws, 32 to 512 channels in f32 and f16 (docs/performance.md).
double part_factor(const SparseProblem& problem) {
  const double bytes = row_bytes(problem);
  return bytes <= 256 ? 0.86 : bytes <= 512 ? 1.0 : 1.1;
}

double ahead_factor_on_device(const SparseProblem& problem, const TeamSchedule& teams,
                              const TeamSchedule& ruled) {
  // Whole warps instead of teams: 0.68 to 0.97 of the time with 32 to 512 channels on an H200.
  if (teams.ways != ruled.ways) return ruled.ways > 0 ? 1.2 : 1.0;
  if (teams.ahead == ruled.ahead) return 1;
  if (teams.ahead < ruled.ahead) return 1.15;
  // Eight instead of four: up to a fifth faster with 32 channels of f32, and slower with 512.
  const double bytes = row_bytes(problem) / total(std::max<std::int64_t>(problem.heads, 1));
  return bytes <= 128 ? 0.9 : bytes <= 1024 ? 1.05 : 1.2;
}

/// As by rows, and holes of lines, whose columns are read.
double cost_of_parts(const SparsePlan& plan, const TeamSchedule& ruled,
                     const SparseProblem& problem, const RowLengths& lengths) {
  constexpr double kHoleBytes = 4;
  const double holes = std::max(cut_of(plan, lengths).slots - total(problem.entries), 0.0);
  const double beside_teams = ruled.ways > 0 ? 1.2 : 1.0;   // as below
  return moved_bytes(problem) * part_factor(problem) * beside_teams + kHoleBytes * holes;
}

double cost_on_device(const SparsePlan& plan, const TeamSchedule& ruled,
                      const SparseProblem& problem, const Target& target,
                      const RowLengths& lengths) {
  if (plan.format != SparseFormat::csr) return cost_of_parts(plan, ruled, problem, lengths);
  const TeamSchedule& teams = *plan.teams;
  const double moved = moved_bytes(problem) * ahead_factor_on_device(problem, teams, ruled);
  const double multiprocessors = std::max(1, target.multiprocessors);
  const double layers = total(ruled.team * ruled.chunks) / total(teams.team * teams.chunks);
  double bytes = moved + std::max(layers - 1, 0.0) * kEntryBytes * total(problem.entries);
  if (problem.maps_entries())
    return bytes + kRunBytes * total(problem.rows + problem.entries) / kWindow;
  if (teams.units > 0) {
    const double best = cuda::best_run(problem, teams, target.multiprocessors);
    bytes += kRunBytes * total(cuda::units_of_start(teams)) * multiprocessors *
             (teams.units + best * best / teams.units);
  } else {
    bytes += kRunBytes * total(problem.rows);
  }
  const bool may_be_long =
      problem.lengths == nullptr || problem.lengths->longest > part_entries(problem.entries);
  if (teams.part_teams > 0 || !may_be_long) return bytes;
  const double longest = problem.lengths == nullptr ? std::sqrt(total(problem.entries))
                                                    : total(problem.lengths->longest);
  return std::max(bytes, longest / std::max(teams.ahead, 1) * kWaitBytes);
}

/// Collects plans that differ from each other.
class SparseSpace {
 public:
  SparseSpace(const SparseProblem& problem, const Target& target)
      : problem_(problem),
        target_(target),
        lengths_(lengths_of(problem)),
        first_(*choose_by_rules(problem, target)) {
    add(first_);
  }

  const SparsePlan& first() const { return first_; }
  const RowLengths& lengths() const { return lengths_; }

  void add(SparsePlan plan) {
    const auto runs_like = [&](const SparseCandidate& other) { return other.plan.runs_like(plan); };
    if (std::any_of(all_.begin(), all_.end(), runs_like)) return;
    if (!all_.empty()) plan.reason = "a candidate";
    const double cost = target_.on_device()
                            ? cost_on_device(plan, *first_.teams, problem_, target_, lengths_)
                            : cost_on_cpu(plan, problem_, target_, lengths_);
    all_.push_back({std::move(plan), cost});
  }

  /// Costs become parts of that of the first.
  std::vector<SparseCandidate> ordered() && {
    std::stable_sort(
        all_.begin() + 1, all_.end(),
        [](const SparseCandidate& a, const SparseCandidate& b) { return a.cost < b.cost; });
    trim();
    const double unit = std::max(all_.front().cost, 1.0);
    for (SparseCandidate& one : all_)
      one.cost = &one == &all_.front() ? 1 : one.cost / unit;
    return std::move(all_);
  }

 private:
  /// The cheapest stay, and the cheapest of each format.
  void trim() {
    std::set<SparseFormat> seen, all_formats;
    for (const SparseCandidate& one : all_)
      all_formats.insert(one.plan.format);
    std::size_t others = kMostCandidates - all_formats.size();
    std::vector<SparseCandidate> kept;
    for (SparseCandidate& one : all_) {
      const bool is_first = seen.insert(one.plan.format).second;
      if (!is_first && others == 0) continue;
      if (!is_first) --others;
      kept.push_back(std::move(one));
    }
    all_ = std::move(kept);
  }

  const SparseProblem& problem_;
  const Target& target_;
  RowLengths lengths_;
  SparsePlan first_;
  std::vector<SparseCandidate> all_;
};

/// Formats whose padding is within bounds, of plans that are else as `uncut`.
void add_formats(SparseSpace& space, const SparseProblem& problem, const SparsePlan& uncut) {
  const double mean = mean_of_filled(problem, space.lengths());
  const auto least = static_cast<std::uint64_t>(std::max(std::ceil(mean), 1.0));
  const auto width = static_cast<std::int64_t>(std::bit_ceil(least));
  const auto add = [&](SparseFormat format, std::int64_t parts, std::int64_t of_lines) {
    SparsePlan plan = uncut;
    plan.format = format;
    plan.column_parts = parts;
    plan.width = of_lines;
    const double most = total(kMostPositionsOfEntry) * total(problem.entries);
    if (cut_of(plan, space.lengths()).slots > most) return;
    space.add(std::move(plan));
  };
  add(SparseFormat::ell, 1, width);
  add(SparseFormat::hyb, 1, width);
  if (uncut.ranges) {
    add(SparseFormat::hyb, 2, width);
  } else if (!problem.maps_entries()) {
    // On a device two parts of columns took 1.3 times as long and more; where rows are added up,
    // lines of up to five times the mean row were measured, which leave fewer rows in pieces.
    add(SparseFormat::hyb, 1, 4 * width);
  }
}

void add_on_cpu(SparseSpace& space, const SparseProblem& problem, const Target& target) {
  for (const std::int64_t work : {1 << 14, 1 << 16, 1 << 18}) {
    for (const std::int32_t ahead : {4, 8, 16}) {
      SparsePlan plan = space.first();
      plan.ranges = RangeSchedule{.work = work, .ahead = ahead};
      space.add(std::move(plan));
    }
  }
  if (problem.entries > 0 && can_cut(problem, target)) add_formats(space, problem, space.first());
}

void add_formats_on_device(SparseSpace& space, const SparseProblem& problem, const Target& target) {
  if (problem.entries == 0 || !can_cut(problem, target)) return;
  SparsePlan uncut = space.first();
  uncut.teams = cuda::teams_over_parts(problem);
  if (cuda::why_invalid(problem, *uncut.teams, true) == nullptr) add_formats(space, problem, uncut);
}

/// One field of the rules' schedule at a time, runs of other lengths with more rows ahead, and the
/// other way to walk.
void add_on_device(SparseSpace& space, const SparseProblem& problem, const Target& target) {
  const TeamSchedule ruled = *space.first().teams;
  const auto add = [&](const TeamSchedule& teams) {
    if (cuda::why_invalid(problem, teams) != nullptr) return;
    SparsePlan plan = space.first();
    plan.teams = teams;
    space.add(std::move(plan));
  };
  const auto with = [&](std::int32_t TeamSchedule::*field, std::int32_t number) {
    TeamSchedule teams = ruled;
    teams.*field = number;
    return teams;
  };
  const std::int32_t aheads[] = {ruled.ahead / 2, ruled.ahead, 2 * ruled.ahead};
  TeamSchedule narrower = with(&TeamSchedule::team, ruled.team / 2);
  narrower.ways = 2 * ruled.ways;
  add(narrower);
  if (problem.maps_entries()) {
    for (const std::int32_t ahead : aheads) {
      for (std::int32_t chunks = 1; chunks <= ruled.chunks; ++chunks) {
        TeamSchedule teams = with(&TeamSchedule::ahead, ahead);
        teams.chunks = chunks;
        add(teams);
      }
    }
    return;
  }
  for (const std::int32_t ahead : aheads) {
    for (const double times : {0.25, 0.5, 1.0, 2.0, 4.0}) {
      TeamSchedule teams = with(&TeamSchedule::ahead, ahead);
      teams.units = static_cast<std::int32_t>(
          std::clamp<std::int64_t>(std::llround(times * ruled.units), 1, cuda::kMostUnits));
      add(teams);
    }
  }
  const TeamSchedule other =
      cuda::row_teams(problem, target, ruled.ways > 0 ? 0 : kWarpLanes / ruled.team);
  for (const std::int32_t times : {1, 2}) {
    TeamSchedule teams = other;
    teams.units = std::min(times * other.units, cuda::kMostUnits);
    add(teams);
  }
  add(with(&TeamSchedule::part_teams, 2 * cuda::kPartTeams));
  add(with(&TeamSchedule::units, 0));
  if (problem.entries <= kMostWholeRow) add(with(&TeamSchedule::part_teams, 0));
}

}   // namespace

std::vector<SparseCandidate> candidates(const SparseProblem& problem, const Target& target) {
  SparseSpace space(problem, target);
  if (target.on_device()) {
    add_on_device(space, problem, target);
    add_formats_on_device(space, problem, target);
  } else {
    add_on_cpu(space, problem, target);
  }
  return std::move(space).ordered();
}

}   // namespace pumice
