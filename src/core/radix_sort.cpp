// Least-significant-digit radix sort, parallel over chunks whose cut depends on the size alone.
#include <pumice/core/radix_sort.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include <pumice/core/buffer.hpp>
#include <pumice/core/parallel.hpp>

namespace pumice {
namespace {

constexpr int kDigitBits = 8;   // 256 open cache lines while scattering: what an L1 cache bears
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;
constexpr std::int64_t kChunk = std::int64_t{1} << 14;

using Counts = std::array<std::int64_t, kDigits>;

struct Pairs {
  std::uint64_t* keys;
  std::int32_t* values;
};

std::int64_t chunks_of(std::int64_t size) { return (size + kChunk - 1) / kChunk; }

/// Bits in which at least two keys differ.
std::uint64_t differing_bits(const std::uint64_t* keys, std::int64_t size) {
  std::vector<std::uint64_t> partial(static_cast<std::size_t>(chunks_of(size)), 0);
  parallel_for(size, kChunk, [&](std::int64_t begin, std::int64_t end) {
    std::uint64_t differing = 0;
    for (std::int64_t i = begin; i < end; ++i) differing |= keys[i] ^ keys[0];
    partial[static_cast<std::size_t>(begin / kChunk)] = differing;
  });
  std::uint64_t differing = 0;
  for (const std::uint64_t bits : partial) differing |= bits;
  return differing;
}

struct Digit {
  int shift;
  std::uint64_t mask;
  std::size_t of(std::uint64_t key) const { return static_cast<std::size_t>(key >> shift & mask); }
};

/// Turns counts per (chunk, digit) into the first position of each: digit by digit, and chunk by
/// chunk within a digit, which is what makes the sort stable.
void counts_to_positions(std::vector<Counts>& counts) {
  std::int64_t position = 0;
  for (std::size_t digit = 0; digit < kDigits; ++digit) {
    for (Counts& chunk : counts) {
      const std::int64_t count = chunk[digit];
      chunk[digit] = position;
      position += count;
    }
  }
}

void sort_digit(Pairs from, Pairs to, std::int64_t size, Digit digit, std::vector<Counts>& counts) {
  parallel_for(size, kChunk, [&](std::int64_t begin, std::int64_t end) {
    Counts& mine = counts[static_cast<std::size_t>(begin / kChunk)];
    mine.fill(0);
    for (std::int64_t i = begin; i < end; ++i) ++mine[digit.of(from.keys[i])];
  });
  counts_to_positions(counts);
  parallel_for(size, kChunk, [&](std::int64_t begin, std::int64_t end) {
    Counts& position = counts[static_cast<std::size_t>(begin / kChunk)];
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t target = position[digit.of(from.keys[i])]++;
      to.keys[target] = from.keys[i];
      to.values[target] = from.values[i];
    }
  });
}

}  // namespace

void radix_sort_pairs(std::span<std::uint64_t> keys, std::span<std::int32_t> values, int bits) {
  PUMICE_ENSURES(keys.size() == values.size(), keys.size(), " keys, ", values.size(), " values");
  PUMICE_ENSURES(bits >= 0 && bits <= 64, "sorting by ", bits, " bits");
  const auto size = static_cast<std::int64_t>(keys.size());
  if (size < 2 || bits == 0) return;

  std::uint64_t differing = differing_bits(keys.data(), size);
  if (bits < 64) differing &= (std::uint64_t{1} << bits) - 1;
  if (differing == 0) return;

  Buffer<std::uint64_t> spare_keys(size);
  Buffer<std::int32_t> spare_values(size);
  std::vector<Counts> counts(static_cast<std::size_t>(chunks_of(size)));
  Pairs from{keys.data(), values.data()};
  Pairs to{spare_keys.data(), spare_values.data()};
  while (differing != 0) {
    const int shift = std::countr_zero(differing);   // digits start where keys do differ
    const int width = std::min(kDigitBits, bits - shift);
    sort_digit(from, to, size, {shift, (std::uint64_t{1} << width) - 1}, counts);
    std::swap(from, to);
    differing = shift + width >= 64 ? 0 : differing >> (shift + width) << (shift + width);
  }
  if (from.keys == keys.data()) return;
  parallel_for(size, kChunk, [&](std::int64_t begin, std::int64_t end) {
    std::copy(from.keys + begin, from.keys + end, to.keys + begin);
    std::copy(from.values + begin, from.values + end, to.values + begin);
  });
}

}  // namespace pumice
