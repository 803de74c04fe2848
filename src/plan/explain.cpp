// A choice in words.
#include <algorithm>

#include <pumice/core/error.hpp>

#include <fmt/format.h>

#include "plan/rules.hpp"

namespace pumice {
namespace {

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

/// "implicit_gemm/…/unsorted: 1.08 times that": of the time of `plan`, or of the rules' plan where
/// nothing is predicted for a plan that somebody made.
std::string other_candidates(const ConvolutionProblem& problem, const Target& target,
                             const ConvolutionPlan& plan) {
  const std::vector<Candidate> all = candidates(problem, target);
  const auto own = std::find_if(all.begin(), all.end(),
                                [&](const Candidate& one) { return one.plan.runs_like(plan); });
  const double unit = own == all.end() ? 1 : own->cost;
  std::string text;
  for (const Candidate& other : all) {
    if (other.plan.runs_like(plan)) continue;
    const std::string times = fmt::format("{:.2f}", other.cost / unit);
    text += fmt::format("  {:<60} {}, by prediction\n", other.plan.name(),
                        times == "1.00" ? "the same time" : times + " times the time");
  }
  return text;
}

}   // namespace

std::string explain(const ConvolutionProblem& problem, const Target& target,
                    const ConvolutionPlan& plan) {
  std::string text =
      fmt::format("{} {}: {} -> {} rows, {} offsets", name_of(problem.direction),
                  name_of(problem.dtype), problem.in_rows, problem.out_rows, problem.offsets);
  if (!target.on_device()) {
    text += fmt::format(", {} pairs ({:.2f} per output, {:.0f} % of all)", problem.pairs,
                        static_cast<double>(problem.pairs) /
                            static_cast<double>(std::max<std::int64_t>(problem.out_rows, 1)),
                        100 * problem.fullness());
  }
  text += fmt::format(", {} -> {} channels", problem.in_channels, problem.out_channels);
  if (problem.groups > 1) text += fmt::format(" in {} groups", problem.groups);
  if (!target.on_device()) text += fmt::format(", {:.3g} GFLOP", problem.flop() * 1e-9);
  text += fmt::format("\n  {}: {}\n", plan.name(), plan.reason);
  if (problem.has_more_inputs()) {
    text +=
        plan.fuses_inputs
            ? "  its tensors of inputs are read by one kernel, where they lie\n"
            : "  its tensors of inputs are brought together first: one kernel reads several on a "
              "device, with implicit_gemm, in one group, in rows of whole 16 bytes\n";
  }
  if (problem.direction != Direction::weight_gradient) {
    const Dataflow ruled = first_that_applies(problem, target).dataflow;
    for (const Dataflow other :
         {Dataflow::gather_gemm_scatter, Dataflow::fetch_on_demand, Dataflow::implicit_gemm}) {
      if (other == plan.dataflow) continue;
      text += fmt::format("  not {}: {}\n", name_of(other),
                          other == ruled ? "another was asked for, or measured to be faster"
                                         : why_not(problem, other));
    }
  }
  return text + other_candidates(problem, target, plan);
}

}   // namespace pumice
