// SHA-256 (FIPS 180-4), which names compiled kernels by what they were compiled from. Written here
// because none of the libraries that Pumice uses has a digest that two texts cannot be made to
// share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace pumice::jit {

using Digest = std::array<std::uint8_t, 32>;

class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text);
  /// A length and the text, so that neighbouring fields cannot run into each other.
  void add_field(std::string_view text);
  /// The digest of all that was added. To be asked for once.
  Digest finish();

 private:
  void compress(const std::byte* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> pending_{};
  std::uint64_t bytes_ = 0;
};

Digest digest_of(std::span<const std::byte> bytes);

/// 64 characters.
std::string hexadecimal(const Digest& digest);

}   // namespace pumice::jit
