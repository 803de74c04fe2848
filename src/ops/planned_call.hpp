// What every operator does with the plan of a call.
#pragma once

#include <pumice/core/device.hpp>
#include <pumice/ops/convolution.hpp>

namespace pumice {

/// `given`, which is checked against the problem and not owned.
PlanPtr given_plan(const ConvolutionPlan& given, const ConvolutionProblem& problem, Device device);

/// The plan of a call that has not been made yet: that of the options, or a chosen one, which is
/// neither logged nor noted.
PlanPtr plan_for(const ConvolutionProblem& problem, Device device,
                 const ConvolutionOptions& options);

/// Logs a plan that was chosen.
void log_choice(const ConvolutionProblem& problem, const ConvolutionPlan& plan, Device device);

}   // namespace pumice
