// 16-bit floating-point storage types. They are never computed with: kernels widen to float,
// accumulate in float and round once on the way out (round to nearest, ties to even).
#pragma once

#include <bit>
#include <cstdint>

namespace pumice {

/// IEEE 754 binary16.
struct Half {
  std::uint16_t bits = 0;
  friend bool operator==(const Half&, const Half&) = default;
};

/// The upper half of a binary32.
struct BFloat16 {
  std::uint16_t bits = 0;
  friend bool operator==(const BFloat16&, const BFloat16&) = default;
};

inline float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

inline BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {   // NaN stays NaN, quiet
    return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  }
  const std::uint32_t round = 0x7fffu + ((bits >> 16) & 1u);
  return {static_cast<std::uint16_t>((bits + round) >> 16)};
}

inline float to_float(Half value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = value.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {   // infinity and NaN
    return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  }
  if (magnitude < 0x400u) {   // zero and subnormal: magnitude * 2^-24 is exact in float
    const float scaled = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
}

inline Half to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<std::uint16_t>(sign | 0x7e00u)};
  if (magnitude >= 0x477ff000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};
  if (magnitude < 0x38800000u) {   // subnormal: let the float adder round at 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<std::uint16_t>(
        sign | (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5f)))};
  }
  const std::uint32_t round = 0xfffu + ((magnitude >> 13) & 1u);
  return {static_cast<std::uint16_t>(sign | ((magnitude - (112u << 23) + round) >> 13))};
}

}   // namespace pumice
