// The compression function of SHA-256 and its padding.
#include "jit/sha256.hpp"

#include <algorithm>
#include <bit>

namespace pumice::jit {
namespace {

constexpr std::array<std::uint32_t, 64> kRound{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian(const std::byte* bytes) {
  return std::to_integer<std::uint32_t>(bytes[0]) << 24 |
         std::to_integer<std::uint32_t>(bytes[1]) << 16 |
         std::to_integer<std::uint32_t>(bytes[2]) << 8 | std::to_integer<std::uint32_t>(bytes[3]);
}

}   // namespace

void Sha256::compress(const std::byte* block) {
  std::array<std::uint32_t, 64> word{};
  for (std::size_t i = 0; i < 16; ++i)
    word[i] = big_endian(block + 4 * i);
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = word[i - 15];
    const std::uint32_t b = word[i - 2];
    word[i] = word[i - 16] + word[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) +
              (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                                ((e & f) ^ (~e & g)) + kRound[i] + word[i];
    const std::uint32_t second =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + first;
    d = c, c = b, b = a, a = first + second;
  }
  const std::array<std::uint32_t, 8> after{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i)
    state_[i] += after[i];
}

void Sha256::add(std::span<const std::byte> bytes) {
  std::size_t used = bytes_ % 64;
  bytes_ += bytes.size();
  if (used > 0) {
    const std::size_t taken = std::min(bytes.size(), 64 - used);
    std::copy_n(bytes.begin(), taken, pending_.begin() + static_cast<std::ptrdiff_t>(used));
    bytes = bytes.subspan(taken);
    if (used + taken < 64) return;
    compress(pending_.data());
  }
  for (; bytes.size() >= 64; bytes = bytes.subspan(64))
    compress(bytes.data());
  std::copy(bytes.begin(), bytes.end(), pending_.begin());
}

void Sha256::add(std::string_view text) {
  add(std::as_bytes(std::span(text)));
}

void Sha256::add_field(std::string_view text) {
  add(std::to_string(text.size()));
  add(":");
  add(text);
}

Digest Sha256::finish() {
  const std::uint64_t bits = bytes_ * 8;
  const std::size_t zeros = (119 - bytes_ % 64) % 64;   // so that the length ends a block
  std::array<std::byte, 72> padding{std::byte{0x80}};
  for (std::size_t i = 0; i < 8; ++i)
    padding[1 + zeros + i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  add(std::span(padding).first(1 + zeros + 8));
  Digest digest{};
  for (std::size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

Digest digest_of(std::span<const std::byte> bytes) {
  Sha256 digest;
  digest.add(bytes);
  return digest.finish();
}

std::string hexadecimal(const Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}   // namespace pumice::jit
