// The heuristic: one row for each rule, read from top to bottom, and what follows from the
// dataflow. The figures behind the thresholds come from benchmarks/ops/convolution_benchmark.cpp.
#include <pumice/plan/choose.hpp>

#include <algorithm>
#include <array>
#include <bit>

#include <pumice/core/error.hpp>

#include <fmt/format.h>

#include "plan/choice_memo.hpp"
#include "plan/measured_choices.hpp"
#include "plan/rules.hpp"
#include "plan/space/device_problem.hpp"

namespace pumice {
namespace {

// Half of a 512 KiB L2 holds the sums of a tile; weights and inputs stream through the rest.
constexpr std::int64_t kSumBytes = 256 * 1024;
constexpr std::int64_t kMinTileRows = 64;
constexpr std::int64_t kMaxTileRows = 4096;
// Tiles differ in work; with this many, the last one running is a small part of the whole.
constexpr std::int64_t kTilesForBalance = 32;
// Above this share of real pairs, going through the whole table costs less than keeping the lists.
constexpr double kFullTable = 0.8;

constexpr std::array kForwardRules{
    Rule{Dataflow::fetch_on_demand, [](const ConvolutionProblem& p) { return p.identity; },
         "every row meets itself alone: whole tiles of rows are multiplied where they lie"},
    Rule{Dataflow::implicit_gemm,
         [](const ConvolutionProblem& p) { return p.out_rows > 0 && p.fullness() >= kFullTable; },
         "nearly every output has every offset, so whole tiles multiply without lists of pairs"},
    Rule{Dataflow::fetch_on_demand, [](const ConvolutionProblem&) { return true; },
         "only pairs that exist are multiplied, and a tile's sums stay in cache over all offsets"},
};

/// On a device tiles of outputs keep their sums in registers; what adds them up in memory moves
/// them once more for each pair.
constexpr Rule kDeviceRule{
    Dataflow::implicit_gemm, [](const ConvolutionProblem&) { return true; },
    "outputs of like neighbours share a tile, whose sums stay in registers over all offsets"};

constexpr const char* kWeightGradientReason =
    "the pairs of each offset are cut into chunks, every chunk adds up its own matrix of input "
    "times gradient, and these are added in order";

/// Rows are gathered in pieces of 16 bytes. Where a tensor's rows are not made of whole ones, all
/// rows would be gathered in narrower pieces, which costs more than a concatenation does.
constexpr std::int64_t kPieceBytes = 16;

void check_wanted(const ConvolutionProblem& problem, std::optional<Dataflow> wanted) {
  if (!wanted) return;
  if (problem.direction == Direction::weight_gradient) {
    PUMICE_EXPECTS(
        *wanted == Dataflow::sum_over_pairs, "dataflow = ", name_of(*wanted),
        ": a weight gradient is a sum over pairs and nothing else; leave the dataflow out");
    return;
  }
  PUMICE_EXPECTS(*wanted != Dataflow::sum_over_pairs,
                 "dataflow = sum_over_pairs for a forward pass or an input gradient: choose "
                 "gather_gemm_scatter, fetch_on_demand or implicit_gemm");
}

ConvolutionPlan weight_gradient_plan(const ConvolutionProblem& problem, const Target& target) {
  ConvolutionPlan plan{.dataflow = Dataflow::sum_over_pairs, .reason = kWeightGradientReason};
  if (!target.on_device()) return plan;
  plan.write = problem.deterministic ? Write::slots : Write::add;
  if (!problem.is_depthwise()) {
    plan.gradient =
        schedule_of(cuda::choose_gradient(cuda::gradient_problem(problem, target, plan.write)));
  }
  return plan;
}

/// How a device runs a dataflow.
void schedule_on_device(ConvolutionPlan& plan, const ConvolutionProblem& problem,
                        const Target& target) {
  plan.fuses_inputs = can_fuse_inputs(problem, target, plan.dataflow);
  plan.sort_by_mask = plan.dataflow == Dataflow::implicit_gemm;
  if (adds_in_memory(plan.dataflow, problem))
    plan.write = problem.deterministic ? Write::slots : Write::add;
  if (plan.dataflow == Dataflow::gather_gemm_scatter || problem.is_depthwise()) return;
  plan.tile = schedule_of(cuda::choose_tile(
      cuda::tile_problem(problem, target, plan.dataflow, plan.write, plan.fuses_inputs)));
}

ConvolutionPlan product_plan(const ConvolutionProblem& problem, const Target& target,
                             std::optional<Dataflow> wanted) {
  ConvolutionPlan plan;
  const Rule& rule = first_that_applies(problem, target);
  plan.dataflow = wanted.value_or(rule.dataflow);
  plan.reason = wanted && *wanted != rule.dataflow
                    ? fmt::format("asked for; the rules would take {}", name_of(rule.dataflow))
                    : rule.why;
  if (target.on_device()) {
    schedule_on_device(plan, problem, target);
    return plan;
  }
  plan.tile_rows = cpu_tile_rows(problem);
  // A full table has one mask: sorting it finds nothing.
  plan.sort_by_mask = plan.dataflow == Dataflow::implicit_gemm && problem.fullness() < kFullTable;
  return plan;
}

PlanPtr made_choice(const ConvolutionProblem& problem, const Target& target,
                    std::optional<Dataflow> wanted) {
  return std::make_shared<const ConvolutionPlan>(problem.direction == Direction::weight_gradient
                                                     ? weight_gradient_plan(problem, target)
                                                     : product_plan(problem, target, wanted));
}

}   // namespace

const Rule& first_that_applies(const ConvolutionProblem& problem, const Target& target) {
  if (target.on_device()) return kDeviceRule;
  return *std::find_if(kForwardRules.begin(), kForwardRules.end(),
                       [&](const Rule& rule) { return rule.applies(problem); });
}

bool can_fuse_inputs(const ConvolutionProblem& problem, const Target& target, Dataflow dataflow) {
  const auto bytes = static_cast<std::int64_t>(size_of(problem.dtype));
  const auto whole = [&](std::int64_t channels) { return channels * bytes % kPieceBytes == 0; };
  return problem.has_more_inputs() && target.on_device() && problem.groups == 1 &&
         problem.direction == Direction::forward && dataflow == Dataflow::implicit_gemm &&
         whole(problem.in_channels) && whole(problem.second_channels) &&
         whole(problem.shortcut_channels) && whole(problem.shortcut_second_channels);
}

bool adds_in_memory(Dataflow dataflow, const ConvolutionProblem& problem) {
  return dataflow == Dataflow::fetch_on_demand && !(problem.identity && !problem.is_depthwise());
}

std::int64_t cpu_tile_rows(const ConvolutionProblem& problem) {
  const std::int64_t sum_bytes = problem.dtype == DType::f64 ? 8 : 4;
  const auto row_bytes =
      static_cast<std::uint64_t>(std::max<std::int64_t>(problem.out_channels, 1) * sum_bytes);
  const auto fitting =
      static_cast<std::int64_t>(std::bit_floor(std::max<std::uint64_t>(kSumBytes / row_bytes, 1)));
  std::int64_t rows = std::clamp(fitting, kMinTileRows, kMaxTileRows);
  while (rows > kMinTileRows && problem.out_rows < rows * kTilesForBalance)
    rows /= 2;
  return rows;
}

PlanPtr choose_by_rules(const ConvolutionProblem& problem, const Target& target,
                        std::optional<Dataflow> wanted) {
  check_wanted(problem, wanted);
  if (!target.on_device()) return made_choice(problem, target, wanted);   // costs less than a look
  const ConvolutionProblem seen = as_chosen(problem);
  const ChoiceKey key = choice_key(seen, target, wanted);
  if (std::optional<PlanPtr> known = rule_memo().find(key)) return *std::move(known);
  return rule_memo().keep(key, made_choice(seen, target, wanted));
}

PlanPtr choose(const ConvolutionProblem& problem, const Target& target,
               std::optional<Dataflow> wanted) {
  if (!wanted) {
    if (PlanPtr measured = measured_choice(problem, target)) return measured;
  }
  return choose_by_rules(problem, target, wanted);
}

}   // namespace pumice
