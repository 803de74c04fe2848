// Operands of the shapes of a problem, and its operator.
#include "ops/tune/sparse_replay.hpp"

#include <utility>

#include <pumice/ops/edge_scores.hpp>
#include <pumice/ops/spmm.hpp>

namespace pumice {
namespace {

ConstTensorView view_of(const Tensor& tensor) {
  return tensor.defined() ? tensor.view() : ConstTensorView{};
}

bool picks(EntryReduction reduction) {
  return reduction == EntryReduction::max || reduction == EntryReduction::min;
}

}   // namespace

SparseReplay::SparseReplay(const SparseProblem& problem, std::shared_ptr<const Csr> pattern,
                           ReplayTensors& tensors)
    : problem_(problem), pattern_(std::move(pattern)) {
  const CsrView view = pattern_->view();
  const std::int64_t channels = problem.channels;
  left_ = tensors.get(view.rows, channels, problem.dtype, 0);
  right_ = tensors.get(view.columns, channels, problem.dtype, 1);
  if (problem.op == SparseOperator::edge_scores) {
    attention_ = tensors.get(problem.heads, channels / problem.heads, problem.dtype, 2);
    if (problem.weighted) entry_ = tensors.get(view.entries(), channels, problem.dtype, 3);
    return;
  }
  if (problem.op != SparseOperator::spmm) return;
  if (problem.weighted) values_ = tensors.get(view.entries(), problem.heads, problem.dtype, 2);
  if (problem.direction == SparseDirection::forward) return;
  const bool of_features = problem.direction == SparseDirection::features_gradient;
  if (of_features) forward_ = transposed(view, tensors.stream());
  if (!picks(problem.reduction)) return;
  // What was picked: of a gradient of features by the rows that its columns are.
  SpmmResult made = of_features ? spmm(forward_.view(), view_of(values_), left_, problem.reduction)
                                : spmm(view, view_of(values_), right_, problem.reduction);
  source_ = std::move(made.source);
}

void SparseReplay::run(const SparsePlan& plan) {
  const CsrView view = pattern_->view();
  switch (problem_.op) {
    case SparseOperator::spmm:
      if (problem_.direction != SparseDirection::forward) return run_gradient(plan);
      (void)spmm(view, view_of(values_), right_, problem_.reduction, {}, &plan);
      return;
    case SparseOperator::sddmm: (void)sddmm(view, left_, right_, problem_.heads, {}, &plan); return;
    case SparseOperator::edge_scores:
      (void)edge_scores(view,
                        {.target = left_,
                         .source = right_,
                         .attention = attention_,
                         .entry = view_of(entry_),
                         .negative_slope = 0.2},
                        {}, &plan);
      return;
  }
}

void SparseReplay::run_gradient(const SparsePlan& plan) {
  const CsrView view = pattern_->view();
  if (problem_.direction == SparseDirection::features_gradient) {
    (void)spmm_features_gradient(forward_.view(), view, view_of(values_), right_, view_of(source_),
                                 problem_.reduction, {}, &plan);
  } else {
    (void)spmm_values_gradient(view, right_, left_, problem_.heads, view_of(source_),
                               problem_.reduction, {}, &plan);
  }
}

}   // namespace pumice
