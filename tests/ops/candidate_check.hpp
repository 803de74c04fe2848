// Every plan that comes into question for a generated convolution, in all directions, each against
// the reference.
#pragma once

#include <map>
#include <string>

#include <pumice/plan/choose.hpp>

#include "ops/convolution_check.hpp"

namespace pumice::test {

/// How many problems each kind of plan was run on: "forward implicit_gemm sorted splits add".
using CandidateCounts = std::map<std::string, int>;

/// What a plan decides, without the sizes that its tiles have.
inline std::string kind_of(const ConvolutionPlan& plan, Direction direction) {
  std::string kind = std::string(name_of(direction)) + " " + std::string(name_of(plan.dataflow));
  if (plan.sort_by_mask) kind += " sorted";
  if (plan.splits > 1) kind += " splits";
  if (plan.write == Write::add) kind += " add";
  if (plan.write == Write::slots) kind += " slots";
  if (plan.gradient && plan.gradient->share_blocks > 0) kind += " shares";
  return kind;
}

/// Empty when all agree; else the plan and what differs. A plan goes through its text on the way.
inline std::string check_candidates(const ConvolutionCase& c, StreamView stream,
                                    CandidateCounts& counts, bool has_cublas = true) {
  CaseMap map = build_case_map(c, stream);
  if (!map.complaint.empty()) return map.complaint;
  const CaseData data(c, std::move(map), stream);
  const Target& target = target_of(stream.device);
  const bool deterministic = c.seed % 3 == 1;
  const auto check_all = [&](ConvolutionOptions options, const ConvolutionProblem& problem,
                             auto&& check_one) -> std::string {
    for (const Candidate& candidate : candidates(problem, target)) {
      const ConvolutionPlan plan = parse_plan(to_text(candidate.plan));
      if (!has_cublas && plan.dataflow == Dataflow::gather_gemm_scatter) continue;
      if (!plan.runs_like(candidate.plan)) return "text of " + candidate.plan.name();
      options.plan = &plan;
      const std::string complaint = check_one(options);
      if (!complaint.empty()) return plan.name() + ": " + complaint;
      ++counts[kind_of(plan, problem.direction)];
    }
    return {};
  };
  ConvolutionOptions options = data.forward_options();
  options.numerics.deterministic = deterministic;
  std::string complaint = check_all(
      options, convolution_problem(data.features.tensor, data.weight.tensor, data.view, options),
      [&](const ConvolutionOptions& with) { return data.check_forward(with); });
  options.epilogue = {};
  if (complaint.empty()) {
    complaint =
        check_all(options,
                  convolution_input_gradient_problem(data.grad_output.tensor, data.weight.tensor,
                                                     data.view, options),
                  [&](const ConvolutionOptions& with) { return data.check_input_gradient(with); });
  }
  if (complaint.empty()) {
    complaint =
        check_all(options,
                  convolution_weight_gradient_problem(data.features.tensor, data.grad_output.tensor,
                                                      data.view, options),
                  [&](const ConvolutionOptions& with) { return data.check_weight_gradient(with); });
  }
  return complaint;
}

}   // namespace pumice::test
