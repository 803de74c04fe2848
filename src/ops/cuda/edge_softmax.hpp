// Launches of attention over the entries of each row.
#pragma once

#include <pumice/ops/edge_softmax.hpp>

namespace pumice::cuda {

void edge_softmax(const CsrView& pattern, const EdgeScores& scores, TensorView output);
/// Of the sums of scores, [entries, heads].
void edge_softmax_gradient(const CsrView& pattern, const EdgeScores& scores, ConstTensorView output,
                           ConstTensorView grad_output, TensorView gradient);
/// values [entries, heads] to [rows, heads].
void sum_entries(const CsrView& pattern, ConstTensorView values, TensorView sums);

}   // namespace pumice::cuda
