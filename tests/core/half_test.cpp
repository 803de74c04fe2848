// 16-bit storage types: every value survives, and rounding is to nearest, ties to even.
#include <pumice/core/half.hpp>

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include <pumice/core/random.hpp>

namespace pumice {
namespace {

/// The value of a binary16 from its definition, with no bit tricks.
double half_by_definition(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(Half, EveryBitPatternMeansWhatTheStandardSays) {
  for (int bits = 0; bits <= 0xffff; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    const double expected = half_by_definition(half.bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(to_float(half))) << bits;
    } else {
      EXPECT_EQ(to_float(half), expected) << bits;
      EXPECT_EQ(to_half(to_float(half)).bits, half.bits) << bits;
    }
  }
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  Random random(7);
  for (int i = 0; i < 200000; ++i) {
    const auto value = static_cast<float>(
        std::ldexp(random.uniform(-2, 2), static_cast<int>(random.integer(-28, 16))));
    const double got = half_by_definition(to_half(value).bits);
    if (std::isinf(got)) {
      EXPECT_GE(std::abs(value), 65520.0f);
      continue;
    }
    const std::uint16_t bits = to_half(value).bits;
    for (const int step : {-1, 1}) {   // no neighbour is nearer; at equal distance ours is even
      const auto next = static_cast<std::uint16_t>(bits + step);
      if ((bits & 0x7fff) == 0 && step < 0) continue;
      const double other = half_by_definition(next);
      if (!std::isfinite(other)) continue;
      const double ours = std::abs(got - static_cast<double>(value));
      const double theirs = std::abs(other - static_cast<double>(value));
      EXPECT_LE(ours, theirs) << value;
      if (ours == theirs) {
        EXPECT_EQ(bits & 1, 0) << value;
      }
    }
  }
}

TEST(BFloat16, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(to_bfloat16(1.0f).bits, 0x3f80);
  EXPECT_EQ(to_bfloat16(1.0f + 0x1p-8f).bits, 0x3f80);             // tie: even below
  EXPECT_EQ(to_bfloat16(1.0f + 0x1p-7f + 0x1p-8f).bits, 0x3f82);   // tie: even above
  EXPECT_EQ(to_bfloat16(1.0f + 0x1p-8f + 0x1p-20f).bits, 0x3f81);
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::numeric_limits<float>::quiet_NaN()))));
  const float signalling = std::bit_cast<float>(0x7f800001u);
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(signalling))));
}

TEST(BFloat16, EveryBitPatternSurvives) {
  for (int bits = 0; bits <= 0xffff; ++bits) {
    const BFloat16 value{static_cast<std::uint16_t>(bits)};
    if (std::isnan(to_float(value))) continue;
    EXPECT_EQ(to_bfloat16(to_float(value)), value) << bits;
  }
}

}   // namespace
}   // namespace pumice
