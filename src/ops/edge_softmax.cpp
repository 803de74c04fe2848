// Checks attention over entries and hands it to the back ends.
#include <pumice/ops/edge_softmax.hpp>

#include <cmath>

#include <pumice/core/error.hpp>

#include "ops/checks.hpp"
#include "ops/cpu/edge_softmax.hpp"
#include "ops/cuda/edge_softmax.hpp"
#include "ops/pattern_checks.hpp"

namespace pumice {
namespace {

/// One of the scores, which all have the type and the heads of `like`.
void check_scores(ConstTensorView scores, const CsrView& pattern, std::int64_t rows,
                  ConstTensorView like, const char* op, const char* name, const char* whose) {
  if (!scores.defined()) return;
  checks::rows_of(scores, pattern, rows, op, name, whose);
  checks::same_dtype(scores, like.dtype(), op, name, "the other scores");
  PUMICE_EXPECTS(scores.extent(1) == like.extent(1), op, ": ", name, " has ", scores.extent(1),
                 " heads where others have ", like.extent(1), ": give as many");
}

/// Any of them.
ConstTensorView first_of(const EdgeScores& scores) {
  if (scores.entry.defined()) return scores.entry;
  return scores.target.defined() ? scores.target : scores.source;
}

/// One of the scores there are.
ConstTensorView checked(const EdgeScores& scores, const CsrView& pattern, const char* op) {
  checks::pattern_size(pattern, op);
  const ConstTensorView like = first_of(scores);
  PUMICE_EXPECTS(like.defined(), op,
                 ": there are no scores: give those of targets, sources or entries");
  check_scores(scores.entry, pattern, pattern.entries(), like, op, "entry", "entries");
  check_scores(scores.target, pattern, pattern.rows, like, op, "target", "rows");
  check_scores(scores.source, pattern, pattern.columns, like, op, "source", "columns");
  PUMICE_EXPECTS(std::isfinite(scores.negative_slope) && scores.negative_slope >= 0, op,
                 ": negative_slope = ", scores.negative_slope,
                 ": give a number that is not negative; 1 leaves scores as they are");
  return like;
}

void check_of_entries(ConstTensorView tensor, const CsrView& pattern, ConstTensorView like,
                      const char* op, const char* name) {
  checks::rows_of(tensor, pattern, pattern.entries(), op, name, "entries");
  checks::same_dtype(tensor, like.dtype(), op, name, "the scores");
  PUMICE_EXPECTS(tensor.extent(1) == like.extent(1), op, ": ", name, " has ", tensor.extent(1),
                 " heads and the scores ", like.extent(1), ": give as many");
}

Tensor sums_of(const CsrView& pattern, ConstTensorView values, const Place& place) {
  Tensor sums = place.make({pattern.rows, values.extent(1)}, values.dtype(), values.stream());
  checks::is_on_device(pattern) ? cuda::sum_entries(pattern, values, sums.view())
                                : cpu::sum_entries(pattern, values, sums.view());
  return sums;
}

}   // namespace

Tensor edge_softmax(const CsrView& pattern, const EdgeScores& scores, const Place& place) {
  const ConstTensorView like = checked(scores, pattern, "edge_softmax");
  Tensor output = place.make({pattern.entries(), like.extent(1)}, like.dtype(), like.stream());
  checks::is_on_device(pattern) ? cuda::edge_softmax(pattern, scores, output.view())
                                : cpu::edge_softmax(pattern, scores, output.view());
  return output;
}

EdgeScoreGradients edge_softmax_gradient(const CsrView& pattern, const CsrView& backwards,
                                         const EdgeScores& scores, ConstTensorView output,
                                         ConstTensorView grad_output,
                                         const EdgeScorePlaces& places) {
  const char* const op = "edge_softmax_gradient";
  const ConstTensorView like = checked(scores, pattern, op);
  check_of_entries(output, pattern, like, op, "output");
  check_of_entries(grad_output, pattern, like, op, "grad_output");
  if (scores.source.defined()) checks::is_transpose(backwards, pattern, op);
  EdgeScoreGradients made;
  const Place of_entries = scores.entry.defined() ? places.entry : Place{};
  Tensor sums = of_entries.make(output.shape(), output.dtype(), output.stream());
  checks::is_on_device(pattern)
      ? cuda::edge_softmax_gradient(pattern, scores, output, grad_output, sums.view())
      : cpu::edge_softmax_gradient(pattern, scores, output, grad_output, sums.view());
  if (scores.target.defined()) made.target = sums_of(pattern, sums, places.target);
  if (scores.source.defined()) made.source = sums_of(backwards, sums, places.source);
  if (scores.entry.defined()) made.entry = std::move(sums);
  return made;
}

}   // namespace pumice
