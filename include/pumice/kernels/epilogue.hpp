// What happens to a sum before it is stored: y = activation(sum · scale + shift + residual).
#pragma once

#include <pumice/shared/activation.h>
#include <pumice/core/tensor.hpp>

namespace pumice {

struct Epilogue {
  ConstTensorView scale{};      // compute type [C_out] (f64 for f64, else f32); undefined: 1
  ConstTensorView shift{};      // compute type [C_out]: bias, or a folded norm; undefined: 0
  ConstTensorView residual{};   // storage type [N_out, C_out]; undefined: 0
  Activation activation = Activation::none;
  double slope = 0.01;   // of leaky_relu
};

}   // namespace pumice
