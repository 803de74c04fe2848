// Conversions between fp32 and the types that rows are stored in, without any header of the
// toolkit: half types travel as raw bits.
#pragma once

#include <pumice/platform.h>
#include <pumice/shared/tile_spec.h>
#if !defined(__CUDACC__)
#include <pumice/instructions_host.h>
#endif

namespace pumice {

#if defined(__CUDACC__)

PUMICE_DEVICE float bits_to_float(uint32_t bits) {
  return __uint_as_float(bits);
}

PUMICE_DEVICE uint32_t float_to_bits(float value) {
  return __float_as_uint(value);
}

/// Two values rounded to nearest even, `low` in the lower half.
template <ElementType kType> PUMICE_DEVICE uint32_t pack_half2(float low, float high) {
  uint32_t bits;
  if constexpr (kType == ElementType::f16) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  }
  return bits;
}

template <ElementType kType> PUMICE_DEVICE float widen_half(uint16_t bits) {
  float value;
  if constexpr (kType == ElementType::f16) {
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  } else {
    value = bits_to_float(static_cast<uint32_t>(bits) << 16);
  }
  return value;
}

/// fp32 rounded to the 10 bits of mantissa that tensor cores read, ties away from zero; they would
/// cut the rest off.
PUMICE_DEVICE uint32_t round_to_tf32(uint32_t bits) {
  uint32_t rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(bits_to_float(bits)));
  return rounded;
}

#else

inline float bits_to_float(uint32_t bits) {
  return emulator::value_of<float>(bits);
}
inline uint32_t float_to_bits(float value) {
  return static_cast<uint32_t>(emulator::word_of(value));
}
template <ElementType kType> uint32_t pack_half2(float low, float high) {
  return emulator::pack_half2(kType, low, high);
}
template <ElementType kType> float widen_half(uint16_t bits) {
  return emulator::widen_half(kType, bits);
}
using emulator::round_to_tf32;

#endif

}   // namespace pumice
