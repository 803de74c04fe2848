// Dense products of rows on the CPU. Arguments are checked by the caller.
#pragma once

#include <pumice/core/tensor.hpp>

namespace pumice::cpu {

/// output = rows · weight (· weightᵀ if `transpose`) + bias.
void linear(ConstTensorView rows, ConstTensorView weight, bool transpose, ConstTensorView bias,
            TensorView output);
void linear_weight_gradient(ConstTensorView features, ConstTensorView grad_output,
                            TensorView grad_weight);
/// Σ over rows, in double, stored in the compute type.
void column_sum(ConstTensorView rows, TensorView sums);

}   // namespace pumice::cpu
