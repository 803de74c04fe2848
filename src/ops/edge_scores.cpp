// Checks scores of additive attention and hands them to their skeletons.
#include <pumice/ops/edge_scores.hpp>

#include <cmath>

#include <pumice/core/error.hpp>
#include <pumice/kernels/edge_map.hpp>
#include <pumice/kernels/score_gradient.hpp>

#include "ops/cuda/edge_scores.hpp"
#include "ops/pattern_checks.hpp"
#include "ops/sparse_calls.hpp"

namespace pumice {
namespace {

/// One of those that have the channels of the targets.
void check_rows(ConstTensorView tensor, const CsrView& pattern, std::int64_t rows,
                ConstTensorView target, const char* op, const char* name, const char* whose) {
  checks::rows_of(tensor, pattern, rows, op, name, whose);
  checks::same_dtype(tensor, target.dtype(), op, name, "target");
  PUMICE_EXPECTS(tensor.extent(1) == target.extent(1), op, ": ", name, " has ", tensor.extent(1),
                 " channels and target ", target.extent(1), ": give as many");
}

void check(const AdditiveScores& scores, const CsrView& pattern, const char* op) {
  checks::pattern_size(pattern, op);
  checks::rows_of(scores.target, pattern, pattern.rows, op, "target", "rows");
  check_rows(scores.source, pattern, pattern.columns, scores.target, op, "source", "columns");
  if (scores.entry.defined())
    check_rows(scores.entry, pattern, pattern.entries(), scores.target, op, "entry", "entries");
  checks::matrix(scores.attention, op, "attention");
  checks::lies_with(scores.attention, pattern, op, "attention");
  checks::same_dtype(scores.attention, scores.target.dtype(), op, "attention", "target");
  PUMICE_EXPECTS(
      scores.attention.rows() >= 1 && scores.attention.elements() == scores.target.extent(1), op,
      ": attention has shape ", to_string(scores.attention.shape()), " for ",
      scores.target.extent(1), " channels: give [heads, channels / heads]");
  checks::head_count(scores.attention.rows(), scores.target.extent(1), op);
  PUMICE_EXPECTS(std::isfinite(scores.negative_slope), op,
                 ": negative_slope = ", scores.negative_slope, ": give a finite number");
}

/// The gradient of the pattern's rows, which are `own`.
ScoreGradientArguments arguments_for(const CsrView& pattern, ConstTensorView own,
                                     ConstTensorView other, const AdditiveScores& scores,
                                     ConstTensorView grad_output, TensorView output) {
  return {.pattern = pattern,
          .own = own,
          .other = other,
          .attention = scores.attention,
          .entry = scores.entry,
          .negative_slope = scores.negative_slope,
          .grad = grad_output,
          .output = output};
}

void run(const ScoreGradientArguments& arguments) {
  checks::is_on_device(arguments.pattern) ? cuda::edge_scores_gradient(arguments)
                                          : score_gradient(arguments);
}

}   // namespace

Tensor edge_scores(const CsrView& pattern, const AdditiveScores& scores, const Place& place,
                   const SparsePlan* plan) {
  check(scores, pattern, "edge_scores");
  SparseProblem problem =
      sparse_problem(SparseOperator::edge_scores, SparseDirection::forward, pattern,
                     scores.target.dtype(), scores.target.extent(1), scores.attention.rows());
  problem.weighted = scores.entry.defined();
  const SparsePlanPtr planned = plan_of(problem, pattern, scores.target.stream(), plan);
  Tensor output = place.make({pattern.entries(), scores.attention.rows()}, scores.target.dtype(),
                             scores.target.stream());
  EdgeMapArguments arguments{.pattern = pattern,
                             .left = scores.target,
                             .right = scores.source,
                             .attention = scores.attention,
                             .entry = scores.entry,
                             .negative_slope = scores.negative_slope,
                             .output = output.view()};
  if (checks::is_on_device(pattern)) {
    cuda::edge_scores(arguments, *planned->teams);
  } else {
    arguments.schedule = *planned->ranges;
    edge_map(arguments);
  }
  return output;
}

AdditiveScoreGradients edge_scores_gradient(const CsrView& pattern, const CsrView& backwards,
                                            const AdditiveScores& scores,
                                            ConstTensorView grad_output,
                                            const AdditiveScorePlaces& places) {
  const char* const op = "edge_scores_gradient";
  checks::whole_rows(pattern, op);
  checks::whole_rows(backwards, op);
  check(scores, pattern, op);
  checks::is_transpose(backwards, pattern, op);
  checks::rows_of(grad_output, pattern, pattern.entries(), op, "grad_output", "entries");
  checks::same_dtype(grad_output, scores.target.dtype(), op, "grad_output", "target");
  PUMICE_EXPECTS(grad_output.extent(1) == scores.attention.rows(), op, ": grad_output has ",
                 grad_output.extent(1), " heads and attention ", scores.attention.rows(),
                 ": give as many");
  const auto like = [&](const Place& place, ConstTensorView tensor) {
    return place.make(tensor.shape(), tensor.dtype(), grad_output.stream());
  };
  AdditiveScoreGradients made{.target = like(places.target, scores.target),
                              .source = like(places.source, scores.source),
                              .attention = like(places.attention, scores.attention),
                              .entry = {}};
  if (scores.entry.defined()) made.entry = like(places.entry, scores.entry);
  ScoreGradientArguments of_targets =
      arguments_for(pattern, scores.target, scores.source, scores, grad_output, made.target.view());
  of_targets.grad_attention = made.attention.view();
  if (made.entry.defined()) of_targets.grad_entry = made.entry.view();
  run(of_targets);
  run(arguments_for(backwards, scores.source, scores.target, scores, grad_output,
                    made.source.view()));
  return made;
}

}   // namespace pumice
