// Elementwise operators on CUDA. Arguments are checked by the caller; everything is enqueued on the
// stream of the first argument.
#pragma once

#include <cstdint>
#include <span>

#include <pumice/ops/elementwise_arguments.h>
#include <pumice/core/tensor.hpp>
#include <pumice/kernels/epilogue.hpp>

namespace pumice::cuda {

/// All of one shape and type.
void combine(ConstTensorView left, ConstTensorView right, Combination combination, TensorView out);
/// out = in · factor, rounded to the type of `out`.
void convert(ConstTensorView in, double factor, TensorView out);
void activate(ConstTensorView in, Activation activation, double slope, TensorView out);
void activation_gradient(ConstTensorView in, ConstTensorView gradient, Activation activation,
                         double slope, TensorView out);
/// scale, shift: f32 [C].
void affine(ConstTensorView in, ConstTensorView scale, ConstTensorView shift, TensorView out);

/// Columns side by side, as CPU's join_columns and cut_columns: each part's columns stand from
/// `offset` elements on in the wide array.
struct Columns {
  ConstTensorView narrow_const{};   // to be joined
  TensorView narrow{};              // to be cut
  std::int64_t offset = 0;
};
void join_columns(std::span<const Columns> parts, TensorView wide);
void cut_columns(std::span<const Columns> parts, ConstTensorView wide);

}   // namespace pumice::cuda
