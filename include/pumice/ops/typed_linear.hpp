// Linear layers of rows that are grouped by type, a matrix for each: relations of a graph, kinds of
// nodes. They run where the rows' types lie; on a device they are enqueued on the stream of the
// features, in f32, f16 or bf16, and in tf32 where that is asked for.
#pragma once

#include <pumice/core/numerics.hpp>
#include <pumice/core/results.hpp>
#include <pumice/formats/typed_rows.hpp>
#include <pumice/kernels/packed_weights.hpp>

namespace pumice {

struct TypedLinearOptions {
  Numerics numerics{};
  PackedWeights* kept = nullptr;   // as in ConvolutionOptions
};

/// output[r] = features[r] · weight[type of r]. features: [rows, C_in] of f64, f32, f16 or bf16
/// (f64: on the CPU); weight: [types, C_in, C_out] of that type. Returns [rows, C_out]. UserError
/// names the argument that does not fit.
Tensor typed_linear(ConstTensorView features, ConstTensorView weight, const TypedRows& types,
                    const TypedLinearOptions& options = {}, const Place& place = {});

/// grad_output [rows, C_out] to [rows, C_in].
Tensor typed_linear_input_gradient(ConstTensorView grad_output, ConstTensorView weight,
                                   const TypedRows& types, const TypedLinearOptions& options = {},
                                   const Place& place = {});

/// [types, C_in, C_out], of the features' type: Σ features[r]ᵀ · grad_output[r] over the rows of
/// each type, 0 for a type without rows.
Tensor typed_linear_weight_gradient(ConstTensorView features, ConstTensorView grad_output,
                                    const TypedRows& types, const TypedLinearOptions& options = {},
                                    const Place& place = {});

}   // namespace pumice
