// The leaky part of attention's scores on one value.
#pragma once

#include <pumice/platform.h>

namespace pumice {

inline constexpr float kLeastFloat = -3.402823466e+38f;

/// A product of minus infinity and a slope of 0 would be NaN.
PUMICE_DEVICE bool is_minus_infinity(float value) {
  return value < kLeastFloat;
}

/// The value above 0, and minus infinity, which is itself; else slope times it.
PUMICE_DEVICE float leaky(float value, float slope) {
  return value > 0 || is_minus_infinity(value) ? value : value * slope;
}

}   // namespace pumice
