// Plans of calls: a given one is checked, a chosen one is logged.
#include "ops/planned_call.hpp"

#include <pumice/core/log.hpp>
#include <pumice/plan/choose.hpp>

namespace pumice {

PlanPtr given_plan(const ConvolutionPlan& given, const ConvolutionProblem& problem, Device device) {
  check(given, problem, target_of(device));
  return PlanPtr(PlanPtr(), &given);   // which owns nothing
}

void log_choice(const ConvolutionProblem& problem, const ConvolutionPlan& plan, Device device) {
  if (logging(LogTopic::plan)) log(LogTopic::plan, explain(problem, target_of(device), plan));
}

}   // namespace pumice
