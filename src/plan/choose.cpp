// The heuristic: one row for each rule, read from top to bottom, and what follows from the
// dataflow. The figures behind the thresholds come from benchmarks/ops/convolution_benchmark.cpp.
#include <pumice/plan/choose.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include <pumice/core/error.hpp>
#include <pumice/plan/plan_book.hpp>

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

/// Where a device cuts the offsets into parts, each with an order of rows of its own: tiles of a
/// part share more neighbours, so that they multiply less in vain, and for few rows more of them
/// run at once. It costs a sum in memory for every part, which pays where a sum has many products
/// that are not made by 16-bit tensor cores, or where outputs do not fill the machine. The first
/// rule that applies counts.
struct SplitRule {
  ElementType operand;
  std::int64_t least_in, least_out;   // channels
  std::int64_t most_rows;
  int parts;                     // at most
  std::int64_t most_mebibytes;   // of all parts' sums
};
constexpr std::int64_t kAnyRows = std::numeric_limits<std::int64_t>::max();
// Measured on an H200 and an H100 (`pumice explain --measure`), whole networks and layers:
// MinkUNet42 took 16.5 ms in f32 without splits and 9.1 with those of 64 channels and more, 2.6 and
// 2.2 in tf32. 105 MB of sums were faster than fewer parts in f32, and larger ones weigh on peak
// memory.
constexpr std::array kSplitRules{
    SplitRule{ElementType::f32, 64, 64, kAnyRows, 4, 128},
    // 48 channels at 60,152 rows 137 to 104 us, 32 at 31,834 63 to 35, and 16 to 32 at 111,372 43
    // to 51; as many parts as wider layers on the same map have, so that it is cut once
    SplitRule{ElementType::f32, 16, 16, 70'000, 4, 128},
    SplitRule{ElementType::f32, 16, 16, 100'000, 3, 128},
    // 64 channels at 14,467 rows 35 to 25 us; 128 at 21,222 lost 3 % of CenterPoint
    SplitRule{ElementType::tf32, 64, 64, 16'000, 4, 48},
    // 256 channels at 5,925 rows 49 to 36 us, 128 there 26 to 21
    SplitRule{ElementType::f16, 64, 128, 8'000, 4, 128},
    SplitRule{ElementType::bf16, 64, 128, 8'000, 4, 128},
};
/// Layers that halve the sites have 8. In f32 the few rows of the coarsest ones would gain, those
/// that double the sites lose, and rules do not see which of them a layer is.
constexpr std::int64_t kLeastSplitOffsets = 16;

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
  // A depthwise matrix is a row, so that chunks' sums are small: its kernel has slots alone.
  const bool has_slots = problem.numerics.deterministic || problem.is_depthwise();
  plan.write = has_slots ? Write::slots : Write::add;
  if (!problem.is_depthwise()) {
    const cuda::GradientChoice chosen =
        cuda::choose_gradient(cuda::gradient_problem(problem, target, plan.write));
    plan.gradient = schedule_of(chosen.spec);
    plan.gradient->share_blocks = chosen.share_blocks;
  }
  return plan;
}

int device_splits(const ConvolutionProblem& problem, Dataflow dataflow) {
  if (dataflow != Dataflow::implicit_gemm || problem.is_depthwise() || problem.groups > 1) return 1;
  const ElementType operand = cuda::operand_type(problem.dtype, problem.numerics.tf32);
  if (problem.offsets < kLeastSplitOffsets) return 1;
  const auto* rule = std::find_if(kSplitRules.begin(), kSplitRules.end(), [&](const SplitRule& r) {
    return r.operand == operand && problem.in_channels >= r.least_in &&
           problem.out_channels >= r.least_out && problem.out_rows <= r.most_rows;
  });
  if (rule == kSplitRules.end()) return 1;
  const std::int64_t bytes = std::max<std::int64_t>(problem.out_rows * problem.out_channels * 4, 1);
  return static_cast<int>(
      std::clamp<std::int64_t>((rule->most_mebibytes << 20) / bytes, 1, rule->parts));
}

/// How a device runs a dataflow.
void schedule_on_device(ConvolutionPlan& plan, const ConvolutionProblem& problem,
                        const Target& target) {
  plan.fuses_inputs = can_fuse_inputs(problem, target, plan.dataflow);
  plan.sort_by_mask = plan.dataflow == Dataflow::implicit_gemm;
  if (adds_in_memory(plan.dataflow, problem))
    plan.write = problem.numerics.deterministic ? Write::slots : Write::add;
  if (plan.dataflow == Dataflow::gather_gemm_scatter || problem.is_depthwise()) return;
  plan.splits = device_splits(problem, plan.dataflow);
  if (plan.splits > 1) plan.write = Write::slots;
  cuda::TileProblem tiles =
      cuda::tile_problem(problem, target, plan.dataflow, plan.write, plan.fuses_inputs);
  tiles.rows *= plan.splits;   // a tile for each part
  plan.tile = schedule_of(cuda::choose_tile(tiles));
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

PlanPtr choose(const ConvolutionProblem& problem, const Target& target, const PlanBook& beside) {
  const PlanPtr measured = measured_choice(problem, target);
  const PlanPtr rules = choose_by_rules(problem, target);
  if (measured != nullptr && !measured->runs_like(*rules)) return measured;
  if (PlanPtr shared = beside.find(key_of(problem, target))) return shared;
  return measured != nullptr ? measured : rules;
}

}   // namespace pumice
