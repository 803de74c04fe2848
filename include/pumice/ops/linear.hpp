// A dense product of every row with one matrix: a 1×1 convolution without a map.
#pragma once

#include <pumice/core/tensor.hpp>
#include <pumice/kernels/tile_weights.hpp>

namespace pumice {

/// y = x · W + b. features: [N, C_in]; weight: [C_in, C_out] of the same dtype; bias: compute type
/// [C_out] (f64 for f64, else f32), undefined: 0. Half types are multiplied in float and rounded
/// once.
Tensor linear(ConstTensorView features, ConstTensorView weight, ConstTensorView bias = {});
/// The same with a weight [C_out, C_in], as PyTorch stores it. `kept`: where a device keeps the
/// packed weight for the next call.
Tensor linear_transposed(ConstTensorView features, ConstTensorView weight,
                         ConstTensorView bias = {}, TileWeights* kept = nullptr);
/// grad_output [N, C_out] · Wᵀ: [N, C_in].
Tensor linear_input_gradient(ConstTensorView grad_output, ConstTensorView weight);
/// xᵀ · grad_output: [C_in, C_out], of the storage type. With the two exchanged, the gradient of a
/// weight as PyTorch stores it. `deterministic`: on a device too the same bits every time, which
/// costs memory and a launch there.
Tensor linear_weight_gradient(ConstTensorView features, ConstTensorView grad_output,
                              bool deterministic = false);
/// The sum over rows, compute type [C_out]; summed in double, on a device in double over sums of a
/// few hundred rows in float.
Tensor linear_bias_gradient(ConstTensorView grad_output);

}   // namespace pumice
