// A dense product of every row with one matrix: a 1×1 convolution without a map.
#pragma once

#include <pumice/core/results.hpp>
#include <pumice/core/row_count.hpp>
#include <pumice/kernels/tile_weights.hpp>

namespace pumice {

/// How a linear layer and its gradients are computed on a device.
struct LinearOptions {
  TileWeights* kept = nullptr;   // where the packed weight is kept for the next call
  /// Weight gradients: the same bits every time, which costs memory and a launch; all else has
  /// them anyway.
  bool deterministic = false;
  /// f32 features: products of numbers rounded to tf32, sums in f32. UserError for other types and
  /// on the CPU.
  bool tf32 = false;
  /// Products on a device: how many of the rows are in use. The others are not read, and what the
  /// result holds there is undefined. Null: all. Not for weight gradients.
  const RowCount* rows = nullptr;
};

/// y = x · W + b. features: [N, C_in]; weight: [C_in, C_out] of the same dtype; bias: compute type
/// [C_out] (f64 for f64, else f32), undefined: 0. Half types are multiplied in float and rounded
/// once.
Tensor linear(ConstTensorView features, ConstTensorView weight, ConstTensorView bias = {},
              const LinearOptions& options = {}, const Place& place = {});
/// The same with a weight [C_out, C_in], as PyTorch stores it.
Tensor linear_transposed(ConstTensorView features, ConstTensorView weight,
                         ConstTensorView bias = {}, const LinearOptions& options = {},
                         const Place& place = {});
/// grad_output [N, C_out] · Wᵀ: [N, C_in].
Tensor linear_input_gradient(ConstTensorView grad_output, ConstTensorView weight,
                             const LinearOptions& options = {}, const Place& place = {});
/// xᵀ · grad_output: [C_in, C_out], of the storage type. With the two exchanged, the gradient of a
/// weight as PyTorch stores it.
Tensor linear_weight_gradient(ConstTensorView features, ConstTensorView grad_output,
                              const LinearOptions& options = {}, const Place& place = {});
/// The sum over rows, compute type [C_out]; summed in double, on a device in double over sums of a
/// few hundred rows in float.
Tensor linear_bias_gradient(ConstTensorView grad_output, const Place& place = {});

}   // namespace pumice
