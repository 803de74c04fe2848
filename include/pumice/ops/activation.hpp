// Activations of single elements, and their gradients.
#pragma once

#include <pumice/core/results.hpp>
#include <pumice/kernels/epilogue.hpp>

namespace pumice {

/// relu: max(x, 0), NaN stays NaN; leaky_relu: x < 0 ? slope · x : x; silu: x · sigmoid(x); gelu:
/// x · Φ(x), Φ the normal distribution (the erf form, not the tanh one); sigmoid; tanh; none: a
/// copy. In f32 all are within 4 units in the last place. Any shape.
Tensor activate(ConstTensorView features, Activation activation, double slope = 0.01,
                const Place& place = {});
/// The same, written over `features`.
void activate_in_place(TensorView features, Activation activation, double slope = 0.01);
/// grad_output · activation'(features), where `features` is what the activation was applied to. At
/// 0 relu's derivative is 0 and leaky_relu's is `slope`, as in PyTorch.
Tensor activation_gradient(ConstTensorView features, ConstTensorView grad_output,
                           Activation activation, double slope = 0.01, const Place& place = {});

}   // namespace pumice
