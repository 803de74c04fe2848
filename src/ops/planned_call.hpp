// The plan of a call: the one that was given, or the one that is chosen, which the tuner gets to
// know.
#pragma once

#include <pumice/core/device.hpp>
#include <pumice/plan/convolution_plan.hpp>

namespace pumice {

/// `given`, which is checked against the problem and not owned.
PlanPtr given_plan(const ConvolutionPlan& given, const ConvolutionProblem& problem, Device device);

/// Of a product of rows that meet themselves: `given`, where it is not null.
PlanPtr plan_of_rows(const ConvolutionProblem& problem, Device device,
                     const ConvolutionPlan* given);

}   // namespace pumice
