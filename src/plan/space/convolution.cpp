// The design space of a convolution: dataflow × schedule × order of rows × splits × way of adding.
// Costs are predictions that order the space and choose nothing by themselves: a plan that the
// rules take comes first, the others in the order in which they are worth measuring.
#include <algorithm>
#include <functional>
#include <map>

#include "plan/rules.hpp"
#include "plan/space/device_problem.hpp"
#include "plan/space/gradient_cost.hpp"
#include "plan/space/tile_heights.hpp"

namespace pumice {
namespace {

// Medians over the layers of MinkUNet42 in f16 on an H200 (`pumice explain --measure`), which
// spread by a factor of two either way: they order what is worth measuring, and choose nothing.
constexpr double kUnsortedWaste = 1.6;      // tiles of 27 offsets that share fewer neighbours
constexpr double kPairTiles = 1.9;          // products of pairs, added up in memory
constexpr double kGatheredProducts = 9.0;   // rows gathered, cuBLAS, sums scattered
constexpr double kSplitWaste = 1.3;         // of what splits are predicted to take, in 16 bits
constexpr double kSplitWasteTf32 = 1.0;
constexpr double kSplitWasteF32 = 0.7;
constexpr double kUnitsOfPass = 2e-5;   // of tile_cost, to write or read one f32 sum
constexpr double kAtomicSums = 1.3;     // a sum that is added in memory, of one that is stored

/// Collects plans that differ from each other.
class Space {
 public:
  void add(ConvolutionPlan plan, double cost) {
    const bool known = std::any_of(all_.begin(), all_.end(), [&](const Candidate& other) {
      return other.plan.runs_like(plan);
    });
    if (!known) all_.push_back({std::move(plan), cost});
  }

  /// `first` leads; costs become parts of its cost.
  std::vector<Candidate> ordered(const ConvolutionPlan& first) && {
    const auto is_first = [&](const Candidate& one) { return one.plan.runs_like(first); };
    const auto comes_before = [&](const Candidate& a, const Candidate& b) {
      if (is_first(a) != is_first(b)) return is_first(a);
      return a.cost < b.cost;
    };
    std::stable_sort(all_.begin(), all_.end(), comes_before);
    if (all_.size() > kMostCandidates) {
      // The cheapest of each kind is kept: predictions compare tiles of one kind best.
      std::vector<Candidate> kept, others;
      for (Candidate& one : all_) {
        const bool known = std::any_of(kept.begin(), kept.end(), [&](const Candidate& other) {
          return same_kind(one.plan, other.plan);
        });
        (known ? others : kept).push_back(std::move(one));
      }
      for (Candidate& one : others) {
        if (kept.size() < kMostCandidates) kept.push_back(std::move(one));
      }
      all_ = std::move(kept);
      std::stable_sort(all_.begin(), all_.end(), comes_before);
    }
    const double unit = all_.empty() || all_.front().cost <= 0 ? 1.0 : all_.front().cost;
    for (Candidate& one : all_) {
      one.cost /= unit;
      one.plan.reason = is_first(one) ? first.reason : "a candidate";
    }
    return std::move(all_);
  }

 private:
  /// But for sizes.
  static bool same_kind(const ConvolutionPlan& a, const ConvolutionPlan& b) {
    return a.dataflow == b.dataflow && a.sort_by_mask == b.sort_by_mask && a.write == b.write &&
           (a.splits > 1) == (b.splits > 1);
  }

  std::vector<Candidate> all_;
};

/// What splits change: the longest tile is shorter, and sums are written and read once more each.
double cost_in_splits(const TileSpec& spec, const cuda::TileProblem& tiles, int splits,
                      Write write) {
  const double whole = cuda::tile_cost(spec, tiles);
  if (splits == 1) return whole;
  cuda::TileProblem more = tiles;
  more.rows *= splits;
  const double sums = static_cast<double>(tiles.rows) * spec.out_channels * spec.groups;
  const double passes = write == Write::add ? 2 + splits * kAtomicSums : 2.0 * splits;
  const double waste = spec.operand == ElementType::f32    ? kSplitWasteF32
                       : spec.operand == ElementType::tf32 ? kSplitWasteTf32
                                                           : kSplitWaste;
  return waste * cuda::tile_cost(spec, more) / splits + kUnitsOfPass * passes * sums;
}

void add_implicit_gemm(Space& space, const ConvolutionProblem& problem, const Target& target) {
  ConvolutionPlan plan{.dataflow = Dataflow::implicit_gemm,
                       .sort_by_mask = true,
                       .fuses_inputs = can_fuse_inputs(problem, target, Dataflow::implicit_gemm)};
  if (problem.is_depthwise()) return space.add(plan, 1);
  const auto add_tiles = [&](int splits, Write write, bool sorted) {
    const cuda::TileProblem tiles =
        cuda::tile_problem(problem, target, plan.dataflow, write, plan.fuses_inputs);
    for (const TileSpec& spec : cuda::tile_candidates(tiles)) {
      if (splits > 1 && spec.resident_offsets > 0) continue;   // which keep all offsets' weights
      ConvolutionPlan one = plan;
      one.splits = splits;
      one.write = write;
      one.sort_by_mask = sorted;
      one.tile = schedule_of(spec);
      space.add(std::move(one),
                cost_in_splits(spec, tiles, splits, write) * (sorted ? 1.0 : kUnsortedWaste));
    }
  };
  add_tiles(1, Write::store, true);
  if (problem.identity) return;   // no map that could be ordered or split
  add_tiles(1, Write::store, false);
  for (int splits = 2; splits <= std::min<std::int64_t>(kMostSplits, problem.offsets); ++splits) {
    add_tiles(splits, Write::slots, true);
    if (!problem.numerics.deterministic) add_tiles(splits, Write::add, true);
  }
}

void add_pair_dataflows(Space& space, const ConvolutionProblem& problem, const Target& target,
                        double unit) {
  for (const Dataflow dataflow : {Dataflow::fetch_on_demand, Dataflow::gather_gemm_scatter}) {
    if (problem.identity && dataflow == Dataflow::fetch_on_demand) continue;   // the same tiles
    space.add(*choose_by_rules(problem, target, dataflow),
              unit * (dataflow == Dataflow::fetch_on_demand ? kPairTiles : kGatheredProducts));
  }
}

std::vector<Candidate> on_device(const ConvolutionProblem& problem, const Target& target) {
  const PlanPtr first = choose_by_rules(problem, target);
  Space space;
  if (problem.direction == Direction::weight_gradient) {
    if (problem.is_depthwise()) {
      space.add(*first, 1);
      return std::move(space).ordered(*first);
    }
    const cuda::GradientProblem gradient = cuda::gradient_problem(problem, target, first->write);
    for (const GradientSpec& spec : cuda::gradient_candidates(gradient)) {
      ConvolutionPlan plan = *first;
      plan.gradient = schedule_of(spec);
      const std::int64_t filling = cuda::gradient_blocks(spec, target.multiprocessors);
      for (const std::int64_t blocks : {filling, filling / 2, filling * 2}) {
        if (blocks == 0) continue;
        plan.gradient->share_blocks = blocks == filling ? 0 : static_cast<std::int32_t>(blocks);
        space.add(plan, cuda::gradient_cost(spec, blocks, gradient));
      }
    }
    return std::move(space).ordered(*first);
  }
  add_implicit_gemm(space, problem, target);
  const double unit = problem.is_depthwise()
                          ? 1.0
                          : cuda::tile_cost(cuda::tile_spec(problem, *first),
                                            cuda::tile_problem(problem, target, first->dataflow,
                                                               first->write, first->fuses_inputs));
  if (!can_fuse_inputs(problem, target, Dataflow::implicit_gemm))
    add_pair_dataflows(space, problem, target, unit);
  return std::move(space).ordered(*first);
}

/// How much of what an order of rows has a tile multiply is products of pairs.
double cpu_cost(const ConvolutionProblem& problem, const ConvolutionPlan& plan) {
  const double full = std::max(problem.fullness(), 1.0 / 64);
  double cost = 1;
  if (plan.dataflow == Dataflow::gather_gemm_scatter) cost = 1.5;
  if (plan.dataflow == Dataflow::implicit_gemm)
    cost = (plan.sort_by_mask ? 1 + 0.5 * (1 / full - 1) : 1 / full) + 0.1 * (plan.splits - 1);
  const auto usual = static_cast<double>(cpu_tile_rows(problem));
  const double ratio = static_cast<double>(plan.tile_rows) / usual;
  return cost * (ratio > 1 ? 0.98 + 0.02 * ratio : 0.98 + 0.02 / ratio);
}

std::vector<Candidate> on_cpu(const ConvolutionProblem& problem, const Target& target) {
  const PlanPtr first = choose_by_rules(problem, target);
  Space space;
  space.add(*first,
            problem.direction == Direction::weight_gradient ? 1 : cpu_cost(problem, *first));
  if (problem.direction == Direction::weight_gradient) return std::move(space).ordered(*first);
  const auto add = [&](const ConvolutionPlan& plan) { space.add(plan, cpu_cost(problem, plan)); };
  const std::int64_t usual = cpu_tile_rows(problem);
  for (const std::int64_t rows : {usual, usual * 2, usual / 2, usual * 4, usual / 4}) {
    if (rows < 32) continue;
    for (const Dataflow dataflow : {Dataflow::fetch_on_demand, Dataflow::gather_gemm_scatter})
      add({.dataflow = dataflow, .tile_rows = rows});
    for (const bool sorted : {true, false})
      add({.dataflow = Dataflow::implicit_gemm, .tile_rows = rows, .sort_by_mask = sorted});
  }
  for (int splits = 2; splits <= std::min<std::int64_t>(kMostSplits, problem.offsets); ++splits) {
    add({.dataflow = Dataflow::implicit_gemm,
         .tile_rows = usual,
         .sort_by_mask = true,
         .splits = splits});
  }
  return std::move(space).ordered(*first);
}

}   // namespace

std::vector<HeightPlan> heights_of(const ConvolutionProblem& problem, const Target& target,
                                   const ConvolutionPlan& first) {
  const cuda::TileProblem tiles =
      cuda::tile_problem(problem, target, first.dataflow, first.write, first.fuses_inputs);
  const auto cost_of = [&](const TileSpec& spec) {
    return cost_in_splits(spec, tiles, first.splits, first.write) *
           (first.sort_by_mask ? 1.0 : kUnsortedWaste);
  };
  std::vector<HeightPlan> plans{{first, cost_of(cuda::tile_spec(problem, first))}};
  std::map<std::int32_t, HeightPlan> others;
  for (const TileSpec& spec : cuda::tiles_of_other_rows(tiles)) {
    if (first.splits > 1 && spec.resident_offsets > 0) continue;
    if (spec.tile_rows == first.tile->tile_rows) continue;
    const double cost = cost_of(spec);
    const auto known = others.find(spec.tile_rows);
    if (known != others.end() && known->second.cost <= cost) continue;
    ConvolutionPlan plan = first;
    plan.tile = schedule_of(spec);
    others[spec.tile_rows] = {std::move(plan), cost};
  }
  for (auto& [height, plan] : others)
    plans.push_back(std::move(plan));
  return plans;
}

std::vector<Candidate> candidates(const ConvolutionProblem& problem, const Target& target) {
  return target.on_device() ? on_device(problem, target) : on_cpu(problem, target);
}

}   // namespace pumice
