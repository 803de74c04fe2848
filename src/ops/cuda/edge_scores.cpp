// Scores are one launch; a gradient is one, one more where a pattern has long rows, and two that
// add up shares of the gradient of attention.
#include "ops/cuda/edge_scores.hpp"

#include <pumice/core/copy.hpp>

#include "kernels/cuda/entry_launch.hpp"
#include "ops/cuda/columns.hpp"
#include "ops/cuda/sources.hpp"

namespace pumice::cuda {

void edge_scores(const EdgeMapArguments& arguments, const TeamSchedule& teams) {
  element_type(arguments.left.dtype(), "edge_scores", "target");
  jit::DeviceRunner runner = runner_for(arguments.left);
  launch_edge_scores(runner, arguments, teams);
}

void edge_scores_gradient(const ScoreGradientArguments& arguments) {
  element_type(arguments.own.dtype(), "edge_scores_gradient", "target");
  jit::DeviceRunner runner = runner_for(arguments.grad);
  const AttentionShares shares = launch_score_gradient(runner, arguments);
  const TensorView attention = arguments.grad_attention;
  if (!attention.defined() || attention.elements() == 0) return;
  if (shares.rows == 0) return fill_async(attention, 0, runner.stream());
  const ConstTensorView rows(shares.value.data(), DType::f32, {shares.rows, attention.elements()},
                             runner.stream());
  sum_items(
      runner, all_rows(rows), rows, false,
      TensorView(attention.raw(), attention.dtype(), {1, attention.elements()}, runner.stream()));
}

}   // namespace pumice::cuda
