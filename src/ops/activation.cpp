// Checks the arguments of activations and hands them to the back end.
#include <pumice/ops/activation.hpp>

#include <cmath>

#include "ops/checks.hpp"
#include "ops/cpu/activation.hpp"
#include "ops/cuda/elementwise.hpp"

namespace pumice {
namespace {

void check(ConstTensorView features, double slope, const char* op) {
  PUMICE_EXPECTS(is_floating(features.dtype()), op, ": features holds ", name_of(features.dtype()),
                 "; convert it to f64, f32, f16 or bf16");
  PUMICE_EXPECTS(std::isfinite(slope), op, ": slope = ", slope, "; pass a finite number");
}

}   // namespace

Tensor activate(ConstTensorView features, Activation activation, double slope, const Place& place) {
  check(features, slope, "activate");
  Tensor output = place.make(features.shape(), features.dtype(), features.stream());
  if (checks::on_cuda(features)) {
    cuda::activate(features, activation, slope, output.view());
  } else {
    cpu::activate(features, activation, slope, output.view());
  }
  return output;
}

void activate_in_place(TensorView features, Activation activation, double slope) {
  check(features, slope, "activate_in_place");
  if (checks::on_cuda(features)) return cuda::activate(features, activation, slope, features);
  cpu::activate(features, activation, slope, features);
}

Tensor activation_gradient(ConstTensorView features, ConstTensorView grad_output,
                           Activation activation, double slope, const Place& place) {
  check(features, slope, "activation_gradient");
  checks::same_shape(grad_output, features, "activation_gradient", "grad_output", "features");
  checks::same_device(grad_output, features, "activation_gradient", "grad_output", "features");
  Tensor grad = place.make(features.shape(), features.dtype(), features.stream());
  if (checks::on_cuda(features)) {
    cuda::activation_gradient(features, grad_output, activation, slope, grad.view());
  } else {
    cpu::activation_gradient(features, grad_output, activation, slope, grad.view());
  }
  return grad;
}

}   // namespace pumice
