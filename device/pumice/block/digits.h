// The digits that radix and counting sorts look at.
#pragma once

namespace pumice {

inline constexpr int kDigitBits = 8;
inline constexpr int kDigits = 1 << kDigitBits;

}   // namespace pumice
