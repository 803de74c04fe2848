// The best plan of each height of tiles, where all else is as the rules say.
#pragma once

#include <vector>

#include <pumice/plan/convolution_plan.hpp>
#include <pumice/plan/problem.hpp>
#include <pumice/plan/target.hpp>

namespace pumice {

struct HeightPlan {
  ConvolutionPlan plan;
  double cost = 0;   // predicted, in the units of tile_cost
};

/// `first` leads, a plan of implicit GEMM on a device with a tile; then the cheapest of each other
/// height, lowest first, among the tiles that are picked for other numbers of rows: their kernels
/// are in bundles.
std::vector<HeightPlan> heights_of(const ConvolutionProblem& problem, const Target& target,
                                   const ConvolutionPlan& first);

}   // namespace pumice
