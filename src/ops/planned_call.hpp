// What every operator does with the plan of a call.
#pragma once

#include <pumice/core/device.hpp>
#include <pumice/plan/convolution_plan.hpp>

namespace pumice {

/// `given`, which is checked against the problem and not owned.
PlanPtr given_plan(const ConvolutionPlan& given, const ConvolutionProblem& problem, Device device);

/// Logs a plan that was chosen.
void log_choice(const ConvolutionProblem& problem, const ConvolutionPlan& plan, Device device);

}   // namespace pumice
