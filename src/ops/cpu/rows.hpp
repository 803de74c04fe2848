// Row moves and reductions on the CPU. Arguments are checked by the caller.
#pragma once

#include <pumice/core/tensor.hpp>

namespace pumice::cpu {

void take_rows(ConstTensorView features, ConstTensorView rows, TensorView output);
void scatter_rows(ConstTensorView grad_output, ConstTensorView rows, TensorView grad_features);
/// Sum, or mean, of the rows that share a value of row_of.
void reduce_sum(ConstTensorView features, ConstTensorView row_of, bool mean, TensorView output);
void reduce_max(ConstTensorView features, ConstTensorView row_of, TensorView output,
                TensorView source);
/// source: the smallest position of each row, -1 for none.
void first_position(ConstTensorView row_of, TensorView source);
/// grad_features[p] = grad_output[row_of[p]] / (how many share the row).
void mean_gradient(ConstTensorView grad_output, ConstTensorView row_of, TensorView grad_features);
/// grad_features[p, c] = grad_output[r, c] where source[r, c] (or source[r]) is p, else 0.
void chosen_gradient(ConstTensorView grad_output, ConstTensorView row_of, ConstTensorView source,
                     TensorView grad_features);

}   // namespace pumice::cpu
