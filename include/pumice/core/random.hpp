// Seeded numbers that are the same on every machine and in every order of asking.
#pragma once

#include <cstdint>

namespace pumice {

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection on 64 bits.
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A stream of numbers named by (seed, stream). Cheap to copy; not for cryptography.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed, std::uint64_t stream = 0)
      : state_(mix_bits(seed) ^ mix_bits(~stream)) {}

  constexpr std::uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15u;
    return mix_bits(state_);
  }
  /// Uniform in [0, 1).
  constexpr double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  constexpr double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Uniform in [low, high], both included; high - low < 2^63.
  constexpr std::int64_t integer(std::int64_t low, std::int64_t high) {
    __extension__ using uint128 = unsigned __int128;
    const auto range = static_cast<std::uint64_t>(high - low) + 1;
    return low + static_cast<std::int64_t>((static_cast<uint128>(bits()) * range) >> 64);
  }
  /// Normal with mean 0 and deviation 1 (Box–Muller, the cosine branch).
  double normal();

 private:
  std::uint64_t state_;
};

}   // namespace pumice
