// A dense product of every row with one matrix: a 1×1 convolution without a map.
#pragma once

#include <pumice/core/numerics.hpp>
#include <pumice/core/results.hpp>
#include <pumice/core/row_count.hpp>
#include <pumice/kernels/packed_weights.hpp>
#include <pumice/plan/convolution_plan.hpp>

namespace pumice {

/// How a linear layer and its gradients are computed on a device.
struct LinearOptions {
  PackedWeights* kept = nullptr;   // where the packed weight is kept for the next call
  Numerics numerics{};
  /// How many of the N rows are in use; null: all. The others are neither read nor written. A plan
  /// of gather–GEMM–scatter waits for the count.
  const RowCount* rows = nullptr;
  /// How it runs on a device; null: chosen. UserError for one that does not suit the problem, and
  /// on the CPU, which has one way.
  const ConvolutionPlan* plan = nullptr;
};

/// Of a linear layer of so many rows, as plans are chosen for it on a device: a convolution whose
/// rows meet themselves. `in_channels` and `out_channels` are those of the product in `direction`:
/// an input gradient goes from the layer's outputs to its inputs.
ConvolutionProblem linear_problem(Direction direction, std::int64_t rows, std::int64_t in_channels,
                                  std::int64_t out_channels, DType dtype,
                                  const LinearOptions& options = {});

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
/// The same with a weight [C_out, C_in], as PyTorch stores it.
Tensor linear_transposed_input_gradient(ConstTensorView grad_output, ConstTensorView weight,
                                        const LinearOptions& options = {}, const Place& place = {});
/// xᵀ · grad_output: [C_in, C_out], of the storage type. With the two exchanged, the gradient of a
/// weight as PyTorch stores it. With the same plan the bits do not depend on how many rows are not
/// in use.
Tensor linear_weight_gradient(ConstTensorView features, ConstTensorView grad_output,
                              const LinearOptions& options = {}, const Place& place = {});
/// The sum over rows, compute type [C_out]; summed in double, on a device in double over sums of a
/// few hundred rows in float. `rows`: how many are in use, null: all; the bits do not depend on how
/// many others there are.
Tensor linear_bias_gradient(ConstTensorView grad_output, const RowCount* rows = nullptr,
                            const Place& place = {});

}   // namespace pumice
