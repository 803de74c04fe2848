// Scores of additive attention on a device, of arguments that fit.
#pragma once

#include <pumice/kernels/edge_map.hpp>
#include <pumice/kernels/score_gradient.hpp>

namespace pumice::cuda {

/// `teams`: of the plan.
void edge_scores(const EdgeMapArguments& arguments, const TeamSchedule& teams);
void edge_scores_gradient(const ScoreGradientArguments& arguments);

}   // namespace pumice::cuda
