// Activation loops on the CPU. Arguments are checked by the caller.
#pragma once

#include <pumice/core/tensor.hpp>
#include <pumice/kernels/epilogue.hpp>

namespace pumice::cpu {

/// `output` may be `features`.
void activate(ConstTensorView features, Activation activation, double slope, TensorView output);
void activation_gradient(ConstTensorView features, ConstTensorView grad_output,
                         Activation activation, double slope, TensorView grad_features);

}   // namespace pumice::cpu
