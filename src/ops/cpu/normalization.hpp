// Normalisation loops on the CPU. Arguments are checked by the caller; parameters, statistics and
// their gradients are of the compute type, and weight and bias may be undefined.
#pragma once

#include <pumice/core/tensor.hpp>

#include "ops/cpu/row_chunks.hpp"

namespace pumice::cpu {

/// Mean and biased variance of the rows of each item, [items, C] in double. Items without rows: 0.
struct Moments {
  std::vector<double> mean;
  std::vector<double> variance;
};
Moments moments(ConstTensorView features, const RowChunks& rows);

/// output = (features - mean) · inverse_deviation · weight + bias; mean, inverse_deviation: [items,
/// C].
void normalize(ConstTensorView features, const RowChunks& rows, ConstTensorView mean,
               ConstTensorView inverse_deviation, ConstTensorView weight, ConstTensorView bias,
               TensorView output);
/// Gradients of `normalize`; `constant_statistics`: mean and deviation do not depend on features.
void normalize_gradient(ConstTensorView features, ConstTensorView grad_output,
                        const RowChunks& rows, ConstTensorView mean,
                        ConstTensorView inverse_deviation, ConstTensorView weight,
                        bool constant_statistics, TensorView grad_features, TensorView grad_weight,
                        TensorView grad_bias);

void layer_norm(ConstTensorView features, ConstTensorView weight, ConstTensorView bias,
                double epsilon, TensorView output, TensorView mean, TensorView inverse_deviation);
void layer_norm_gradient(ConstTensorView features, ConstTensorView grad_output,
                         ConstTensorView weight, ConstTensorView mean,
                         ConstTensorView inverse_deviation, TensorView grad_features,
                         TensorView grad_weight, TensorView grad_bias);

}   // namespace pumice::cpu
