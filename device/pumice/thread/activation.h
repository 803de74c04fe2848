// The activations on one value. Out of range and NaN behave as on the CPU: NaN stays NaN.
#pragma once

#include <pumice/platform.h>
#include <pumice/shared/activation.h>
#include <pumice/shared/tile_spec.h>

namespace pumice {

PUMICE_DEVICE float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}

/// x · Φ(x) with the error function, not its tanh approximation.
PUMICE_DEVICE float gelu(float x) {
  return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
}

/// none, relu and leaky_relu as the slope below zero.
PUMICE_DEVICE float negative_slope(Activation activation, float slope) {
  return activation == Activation::none ? 1.0f : activation == Activation::relu ? 0.0f : slope;
}

/// `below` is negative_slope(activation, …); −∞ · 0 must not become NaN.
template <ActivationSet kSet>
PUMICE_DEVICE float activate(float x, Activation activation, float below) {
  if constexpr (kSet == ActivationSet::all) {
    switch (activation) {
      case Activation::silu: return x * sigmoid(x);
      case Activation::gelu: return gelu(x);
      case Activation::sigmoid: return sigmoid(x);
      case Activation::tanh: return tanhf(x);
      default: break;
    }
  }
  return x < 0.0f ? (below == 0.0f ? 0.0f : x * below) : x;
}

}   // namespace pumice
