// Plans of calls, from what was given and what the stage `plan` chooses.
#include "ops/planned_call.hpp"

#include <pumice/core/log.hpp>
#include <pumice/plan/choose.hpp>

#include "ops/tune/call_recorder.hpp"

namespace pumice {

PlanPtr given_plan(const ConvolutionPlan& given, const ConvolutionProblem& problem, Device device) {
  check(given, problem, target_of(device));
  return PlanPtr(PlanPtr(), &given);   // which owns nothing
}

PlanPtr plan_of_rows(const ConvolutionProblem& problem, Device device,
                     const ConvolutionPlan* given) {
  if (given != nullptr) return given_plan(*given, problem, device);
  const Target& target = target_of(device);
  PlanPtr plan = choose(problem, target);
  if (logging(LogTopic::plan)) log(LogTopic::plan, explain(problem, target, *plan));
  if (records_calls()) note_call({.problem = problem, .plan = plan, .map = nullptr});
  return plan;
}

}   // namespace pumice
