// A convolution in the terms of a device's kernels: the part of their specifications that the
// problem fixes. A schedule completes it.
#pragma once

#include <pumice/plan/convolution_plan.hpp>
#include <pumice/plan/problem.hpp>
#include <pumice/plan/target.hpp>

#include "plan/space/gradient_table.hpp"
#include "plan/space/tile_table.hpp"

namespace pumice::cuda {

/// What features are multiplied as; tf32 goes with f32 alone. InternalError for types that a device
/// does not take.
ElementType operand_type(DType features, bool tf32);

/// Of a forward pass or an input gradient in a dataflow. Rows are those that tiles cover: of
/// fetch-on-demand, the pairs that are likely. `fuses_inputs`: whether the kernel reads all inputs.
TileProblem tile_problem(const ConvolutionProblem& problem, const Target& target, Dataflow dataflow,
                         Write write, bool fuses_inputs);
GradientProblem gradient_problem(const ConvolutionProblem& problem, const Target& target,
                                 Write write);

/// The kernel that a plan with a schedule names. UserError where none can be built.
TileSpec tile_spec(const ConvolutionProblem& problem, const ConvolutionPlan& plan);
GradientSpec gradient_spec(const ConvolutionProblem& problem, const ConvolutionPlan& plan);

}   // namespace pumice::cuda
