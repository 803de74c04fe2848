// The heuristic: one row for each rule, read from top to bottom, and the sizes that follow. The
// figures behind the thresholds come from benchmarks/ops/convolution_benchmark.cpp.
#include <pumice/plan/convolution_plan.hpp>

#include <algorithm>
#include <array>
#include <bit>

#include <pumice/core/error.hpp>

#include <fmt/format.h>

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

constexpr std::array kDataflows{Dataflow::gather_gemm_scatter, Dataflow::fetch_on_demand,
                                Dataflow::implicit_gemm};

struct Rule {
  Dataflow dataflow;
  bool (*applies)(const ConvolutionProblem&);
  const char* why;
};

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

/// Why a dataflow was passed over that the rules did not take.
const char* why_not(const ConvolutionProblem& problem, Dataflow dataflow) {
  switch (dataflow) {
    case Dataflow::gather_gemm_scatter:
      return "copying rows together and adding products up in memory costs more than it saves: "
             "tiles read rows where they lie, at the rate of a dense product";
    case Dataflow::fetch_on_demand: return "a more regular structure was at hand";
    case Dataflow::sum_over_pairs: break;
    case Dataflow::implicit_gemm:
      return problem.identity ? "a table of one column says no more than the rows themselves"
                              : "too few outputs have every offset: multiplying by the zeros in "
                                "between would be wasted";
  }
  PUMICE_ENSURES(false, "dataflow ", static_cast<int>(dataflow));
  return "";
}

constexpr const char* kWeightGradientReason =
    "the pairs of each offset are cut into chunks, every chunk adds up its own matrix of input "
    "times gradient, and these are added in order";

const Rule& first_that_applies(const ConvolutionProblem& problem) {
  if (problem.on_device) return kDeviceRule;
  return *std::find_if(kForwardRules.begin(), kForwardRules.end(),
                       [&](const Rule& rule) { return rule.applies(problem); });
}

/// Rows are gathered in pieces of 16 bytes. Where a tensor's rows are not made of whole ones, all
/// rows would be gathered in narrower pieces, which costs more than a concatenation does.
constexpr std::int64_t kPieceBytes = 16;

/// Groups have one input; other dataflows multiply what lies in one tensor.
bool can_fuse_inputs(const ConvolutionProblem& problem, Dataflow dataflow) {
  const auto bytes = static_cast<std::int64_t>(size_of(problem.dtype));
  const auto whole = [&](std::int64_t channels) { return channels * bytes % kPieceBytes == 0; };
  return problem.has_more_inputs() && problem.on_device && problem.groups == 1 &&
         problem.direction == Direction::forward && dataflow == Dataflow::implicit_gemm &&
         whole(problem.in_channels) && whole(problem.second_channels) &&
         whole(problem.shortcut_channels) && whole(problem.shortcut_second_channels);
}

std::int64_t tile_rows_for(const ConvolutionProblem& problem) {
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

}   // namespace

std::string_view name_of(Direction direction) {
  switch (direction) {
    case Direction::forward: return "forward";
    case Direction::input_gradient: return "input_gradient";
    case Direction::weight_gradient: return "weight_gradient";
  }
  PUMICE_ENSURES(false, "direction ", static_cast<int>(direction));
  return {};
}

std::string_view name_of(Dataflow dataflow) {
  switch (dataflow) {
    case Dataflow::gather_gemm_scatter: return "gather_gemm_scatter";
    case Dataflow::fetch_on_demand: return "fetch_on_demand";
    case Dataflow::implicit_gemm: return "implicit_gemm";
    case Dataflow::sum_over_pairs: return "sum_over_pairs";
  }
  PUMICE_ENSURES(false, "dataflow ", static_cast<int>(dataflow));
  return {};
}

Dataflow parse_dataflow(std::string_view name) {
  for (const Dataflow dataflow : kDataflows) {
    if (name == name_of(dataflow)) return dataflow;
  }
  detail::raise_user("dataflow = \"", name,
                     "\": choose gather_gemm_scatter, fetch_on_demand or implicit_gemm");
}

double ConvolutionProblem::flop() const {
  const auto out = static_cast<double>(out_channels);
  const double of_pairs = static_cast<double>(pairs) * static_cast<double>(in_channels) /
                          static_cast<double>(std::max<std::int64_t>(groups, 1));
  const double of_shortcut = static_cast<double>(out_rows) * static_cast<double>(shortcut_channels);
  return 2.0 * (of_pairs + of_shortcut) * out;
}

double ConvolutionProblem::fullness() const {
  const double entries = static_cast<double>(out_rows) * static_cast<double>(offsets);
  return entries == 0 ? 0 : static_cast<double>(pairs) / entries;
}

std::string ConvolutionPlan::name() const {
  std::string text(name_of(dataflow));
  if (!kernel.empty()) return text + "/" + kernel;
  if (dataflow != Dataflow::sum_over_pairs) text += fmt::format("/{}", tile_rows);
  if (sort_by_mask) text += "/sorted";
  if (splits > 1) text += fmt::format("/splits {}", splits);
  return text;
}

ConvolutionPlan plan_convolution(const ConvolutionProblem& problem,
                                 std::optional<Dataflow> wanted) {
  ConvolutionPlan plan;
  if (problem.direction == Direction::weight_gradient) {
    PUMICE_EXPECTS(
        !wanted || *wanted == Dataflow::sum_over_pairs, "dataflow = ", name_of(*wanted),
        ": a weight gradient is a sum over pairs and nothing else; leave the dataflow out");
    plan.dataflow = Dataflow::sum_over_pairs;
    plan.reason = kWeightGradientReason;
    return plan;
  }
  PUMICE_EXPECTS(wanted != Dataflow::sum_over_pairs,
                 "dataflow = sum_over_pairs for a forward pass or an input gradient: choose "
                 "gather_gemm_scatter, fetch_on_demand or implicit_gemm");
  plan.tile_rows = problem.on_device ? 0 : tile_rows_for(problem);
  const Rule& rule = first_that_applies(problem);
  plan.dataflow = wanted.value_or(rule.dataflow);
  plan.reason = wanted && *wanted != rule.dataflow
                    ? fmt::format("asked for; the rules would take {}", name_of(rule.dataflow))
                    : rule.why;
  // A full table has one mask: sorting it finds nothing.
  const bool is_full = !problem.on_device && problem.fullness() >= kFullTable;
  plan.sort_by_mask = plan.dataflow == Dataflow::implicit_gemm && !is_full;
  plan.fuses_inputs = can_fuse_inputs(problem, plan.dataflow);
  return plan;
}

std::string explain(const ConvolutionProblem& problem, const ConvolutionPlan& plan) {
  std::string text = fmt::format(
      "{} {}: {} -> {} rows, {} offsets, {} pairs ({:.2f} per output, {:.0f} % of all), "
      "{} -> {} channels",
      name_of(problem.direction), name_of(problem.dtype), problem.in_rows, problem.out_rows,
      problem.offsets, problem.pairs,
      static_cast<double>(problem.pairs) /
          static_cast<double>(std::max<std::int64_t>(problem.out_rows, 1)),
      100 * problem.fullness(), problem.in_channels, problem.out_channels);
  if (problem.groups > 1) text += fmt::format(" in {} groups", problem.groups);
  text +=
      fmt::format(", {:.3g} GFLOP\n  {}: {}\n", problem.flop() * 1e-9, plan.name(), plan.reason);
  if (problem.direction == Direction::weight_gradient) return text;
  if (problem.has_more_inputs()) {
    text +=
        plan.fuses_inputs
            ? "  its tensors of inputs are read by one kernel, where they lie\n"
            : "  its tensors of inputs are brought together first: one kernel reads several on a "
              "device, with implicit_gemm, in one group, in rows of whole 16 bytes\n";
  }
  const Dataflow ruled = first_that_applies(problem).dataflow;
  for (const Dataflow other : kDataflows) {
    if (other == plan.dataflow) continue;
    text += fmt::format("  not {}: {}\n", name_of(other),
                        other == ruled ? "another was asked for" : why_not(problem, other));
  }
  return text;
}

}   // namespace pumice
