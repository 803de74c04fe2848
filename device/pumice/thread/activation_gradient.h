// The derivatives of the activations at one value. At 0 relu's is 0 and leaky_relu's is its slope,
// as on the CPU and in PyTorch.
#pragma once

#include <pumice/thread/activation.h>

namespace pumice {

/// Φ(x) + x · φ(x)
PUMICE_DEVICE float gelu_slope(float x) {
  const float density = 0.39894228040143268f * expf(-0.5f * x * x);
  return 0.5f * (1.0f + erff(x * 0.70710678118654752f)) + x * density;
}

PUMICE_DEVICE float activation_slope(float x, Activation activation, float slope) {
  switch (activation) {
    case Activation::relu: return x > 0.0f ? 1.0f : 0.0f;
    case Activation::leaky_relu: return x > 0.0f ? 1.0f : slope;
    case Activation::silu: {
      const float s = sigmoid(x);
      return s * (1.0f + x * (1.0f - s));
    }
    case Activation::gelu: return gelu_slope(x);
    case Activation::sigmoid: {
      const float s = sigmoid(x);
      return s * (1.0f - s);
    }
    case Activation::tanh: {
      const float t = tanhf(x);
      return 1.0f - t * t;
    }
    case Activation::none: break;
  }
  return 1.0f;
}

}   // namespace pumice
