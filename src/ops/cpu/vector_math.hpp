// exp, tanh and the normal distribution without branches or table look-ups, so that a plain loop of
// them becomes vector code. The float versions are polynomials fitted to Chebyshev nodes (mpmath,
// 40 digits); the double versions call the C library, whose results nothing here could improve.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace pumice::cpu {

/// condition ? a : b with both sides computed. As a branch the compiler would move a side into it,
/// and then could not vectorise: a floating-point operation must not run where it was not asked to.
template <class C> inline C select(bool condition, C a, C b) {
  using Bits = std::conditional_t<sizeof(C) == 8, std::uint64_t, std::uint32_t>;
  const Bits mask = Bits{0} - static_cast<Bits>(condition);
  return std::bit_cast<C>((std::bit_cast<Bits>(a) & mask) | (std::bit_cast<Bits>(b) & ~mask));
}

/// Within 2 units in the last place, subnormal results included; 0 below -104, inf above 89.
inline float exp_of(float x) {
  constexpr float kLog2e = 0x1.715476p+0f;
  constexpr float kLn2High = 0x1.62e4p-1f;   // 14 bits, so that n · high is exact
  constexpr float kLn2Low = 0x1.7f7d1cp-20f;
  constexpr float kMagic = 0x1.8p23f;   // adding it rounds to an integer
  const float below = select(x > 89.0f, 89.0f, x);
  const float clamped =
      select(below > -104.0f, below, -104.0f);   // a NaN too: it must not reach the cast
  const float shifted = std::fma(clamped, kLog2e, kMagic);
  const float n = shifted - kMagic;
  const float r = std::fma(-n, kLn2Low, std::fma(-n, kLn2High, clamped));
  float p = 1.394322177e-3f;
  p = std::fma(p, r, 8.376818502e-3f);
  p = std::fma(p, r, 4.1666327e-2f);
  p = std::fma(p, r, 1.666639478e-1f);
  p = std::fma(p, r, 5.000000053e-1f);
  p = std::fma(p, r, 1.000000042f);
  p = std::fma(p, r, 1.0f);
  // 2^n as two factors: n reaches -150, beyond one exponent.
  const auto exponent = static_cast<std::int32_t>(n);
  const std::int32_t half = exponent >> 1;
  const float first = std::bit_cast<float>((half + 127) << 23);
  const float second = std::bit_cast<float>((exponent - half + 127) << 23);
  const float result = p * first * second;
  return select(x != x, x, result);
}
inline double exp_of(double x) {
  return std::exp(x);
}

/// exp(-x² / 2); the square is kept in two parts, or its rounding would show in the far tail.
inline float gauss_of(float x) {
  const float square = x * x;
  const float lost = std::fma(x, x, -square);
  return exp_of(-0.5f * square) * select(square < 300.0f, std::fma(-0.5f, lost, 1.0f), 1.0f);
}
inline double gauss_of(double x) {
  return std::exp(-0.5 * x * x);
}

/// Φ(x), the normal distribution function, relative accuracy in both tails: the tail is
/// exp(-x² / 2) · u · P(u - 1/2) with u = 1 / (1 + 0.28125 |x|), P fitted for 0.98 <= |x| <= 14.6
/// (below, exp underflows) to 2.4e-9. Within 1 of 0 it is 1/2 + x · Q(x²), which rounds once at the
/// end.
inline float normal_distribution(float x) {
  const float u = 1.0f / std::fma(0.28125f, std::fabs(x), 1.0f);
  const float v = u - 0.5f;
  float p = 3.234808224e-2f;
  p = std::fma(p, v, 7.815742845e-3f);
  p = std::fma(p, v, -6.312077302e-2f);
  p = std::fma(p, v, -5.036093408e-2f);
  p = std::fma(p, v, 9.709784194e-2f);
  p = std::fma(p, v, 2.788544617e-1f);
  p = std::fma(p, v, 3.645641216e-1f);
  p = std::fma(p, v, 3.211131533e-1f);
  p = std::fma(p, v, 2.097587715e-1f);
  const float tail = gauss_of(x) * (u * p);
  const float square = x * x;
  float q = -7.660538171e-6f;
  q = std::fma(q, square, 1.135022962e-4f);
  q = std::fma(q, square, -1.186343989e-3f);
  q = std::fma(q, square, 9.973328481e-3f);
  q = std::fma(q, square, -6.649036057e-2f);
  q = std::fma(q, square, 3.989422801e-1f);
  const float outside = select(x < 0.0f, tail, 1.0f - tail);
  return select(square < 1.0f, std::fma(x, q, 0.5f), outside);
}
inline double normal_distribution(double x) {
  return 0.5 * std::erfc(-x * 0.70710678118654752440);
}

/// 1 / (1 + exp(-x)), accurate for large |x| of either sign.
template <class C> inline C sigmoid_of(C x) {
  const C e = exp_of(-std::fabs(x));
  return select(x < C{0}, e, C{1}) / (C{1} + e);
}

inline float tanh_of(float x) {
  const float a = std::fabs(x);
  const float square = x * x;
  float p = -6.096714166e-3f;
  p = std::fma(p, square, 2.0997179e-2f);
  p = std::fma(p, square, -5.385090958e-2f);
  p = std::fma(p, square, 1.333276974e-1f);
  p = std::fma(p, square, -3.333332894e-1f);
  const float near = std::fma(x * square, p, x);
  const float far = std::copysign(1.0f - 2.0f / (exp_of(2.0f * a) + 1.0f), x);
  return select(a < 0.625f, near, far);
}
inline double tanh_of(double x) {
  return std::tanh(x);
}

}   // namespace pumice::cpu
