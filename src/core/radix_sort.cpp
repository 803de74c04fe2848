// Least-significant-digit radix sort, parallel over chunks whose cut depends on the size alone.
//
// Key and value travel as one 64-bit word wherever both fit, which they do in all but the widest
// grids: one stream to read and one to scatter instead of two, and 8 bytes an element, not 12.
#include <pumice/core/radix_sort.hpp>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include <pumice/core/buffer.hpp>
#include <pumice/core/parallel.hpp>

namespace pumice {
namespace {

// Widest digit: 2048 open cache lines while scattering are 128 KiB, which an L2 cache bears. Few
// elements are sorted by narrower digits, whose counts are quicker to add up.
constexpr int kWideDigitBits = 11;
constexpr int kNarrowDigitBits = 8;
constexpr std::int64_t kFew = std::int64_t{1} << 15;
constexpr std::int64_t kLeastChunk = std::int64_t{1} << 13;
constexpr std::int64_t kMostChunks = 256;   // bounds the counts: 2 MiB

std::int64_t chunk_for(std::int64_t size) {
  return std::max(kLeastChunk, (size + kMostChunks - 1) / kMostChunks);
}

struct Digit {
  int shift;
  int bits;
  std::size_t of(std::uint64_t word) const {
    return static_cast<std::size_t>(word >> shift & ((std::uint64_t{1} << bits) - 1));
  }
};

/// Digits that cover the differing bits, as few and as equally wide as can be.
std::vector<Digit> digits_for(std::uint64_t differing, int widest) {
  std::vector<Digit> digits;
  while (differing != 0) {
    const int shift = std::countr_zero(differing);   // digits start where keys do differ
    const int left = static_cast<int>(std::bit_width(differing)) - shift;
    const int passes = (left + widest - 1) / widest;
    const int bits = (left + passes - 1) / passes;
    digits.push_back({shift, bits});
    differing = shift + bits >= 64 ? 0 : differing >> (shift + bits) << (shift + bits);
  }
  return digits;
}

/// What the elements have in common decides how they are sorted.
struct Survey {
  std::uint64_t differing = 0;   // bits in which at least two keys differ
  std::uint64_t keys = 0;        // bits that are set in some key
  std::uint32_t values = 0;      // bits that are set in some value
};

Survey survey(std::span<const std::uint64_t> keys, std::span<const std::int32_t> values) {
  const auto size = static_cast<std::int64_t>(keys.size());
  const std::int64_t chunk = chunk_for(size);
  std::vector<Survey> partial(static_cast<std::size_t>((size + chunk - 1) / chunk));
  parallel_for(size, chunk, [&](std::int64_t begin, std::int64_t end) {
    Survey mine;
    const std::uint64_t first = keys[0];
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      mine.differing |= keys[i] ^ first;
      mine.keys |= keys[i];
      mine.values |= static_cast<std::uint32_t>(values[i]);
    }
    partial[static_cast<std::size_t>(begin / chunk)] = mine;
  });
  Survey all;
  for (const Survey& mine : partial) {
    all.differing |= mine.differing;
    all.keys |= mine.keys;
    all.values |= mine.values;
  }
  return all;
}

/// Where keys and values lie apart.
struct Apart {
  using Element = std::pair<std::uint64_t, std::int32_t>;
  std::uint64_t* keys;
  std::int32_t* values;
  std::uint64_t word(std::int64_t i) const { return keys[i]; }
  Element load(std::int64_t i) const { return {keys[i], values[i]}; }
  void store(std::int64_t i, Element element) const {
    keys[i] = element.first;
    values[i] = element.second;
  }
};

/// Where they lie in one word, the value lowest.
struct Packed {
  std::uint64_t* words;
  std::uint64_t word(std::int64_t i) const { return words[i]; }
  std::uint64_t load(std::int64_t i) const { return words[i]; }
  void store(std::int64_t i, std::uint64_t word) const { words[i] = word; }
};

/// Where they lie apart and are put together or taken apart on the way.
struct Packing {
  std::uint64_t* keys;
  std::int32_t* values;
  int value_bits;
  std::uint64_t word(std::int64_t i) const {   // its digits are all of the key
    return keys[i] << value_bits;
  }
  std::uint64_t load(std::int64_t i) const {
    return keys[i] << value_bits | static_cast<std::uint32_t>(values[i]);
  }
  void store(std::int64_t i, std::uint64_t word) const {
    keys[i] = word >> value_bits;
    values[i] = static_cast<std::int32_t>(word & ((std::uint64_t{1} << value_bits) - 1));
  }
};

class Sorter {
 public:
  Sorter(std::int64_t size, int widest)
      : size_(size),
        chunk_(chunk_for(size)),
        chunks_((size + chunk_ - 1) / chunk_),
        counts_(chunks_ << widest) {}

  template <class From, class To> void sort(const From& from, const To& to, Digit digit) {
    const std::int64_t row = std::int64_t{1} << digit.bits;
    parallel_for(size_, chunk_, [&](std::int64_t begin, std::int64_t end) {
      std::uint32_t* mine = counts_.data() + begin / chunk_ * row;
      std::fill_n(mine, row, 0);
      for (std::int64_t i = begin; i < end; ++i)
        ++mine[digit.of(from.word(i))];
    });
    counts_to_positions(row);
    parallel_for(size_, chunk_, [&](std::int64_t begin, std::int64_t end) {
      std::uint32_t* position = counts_.data() + begin / chunk_ * row;
      for (std::int64_t i = begin; i < end; ++i) {
        to.store(std::int64_t{position[digit.of(from.word(i))]++}, from.load(i));
      }
    });
  }

  /// Copies without sorting.
  template <class From, class To> void copy(const From& from, const To& to) const {
    parallel_for(size_, chunk_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        to.store(i, from.load(i));
    });
  }

 private:
  /// Turns counts per (chunk, digit) into the first position of each: digit by digit, and chunk by
  /// chunk within a digit, which is what makes the sort stable.
  void counts_to_positions(std::int64_t row) {
    std::vector<std::uint32_t> next(static_cast<std::size_t>(row), 0);
    const auto* count = counts_.data();
    for (std::int64_t chunk = 0; chunk < chunks_; ++chunk, count += row) {
      for (std::size_t digit = 0; digit < next.size(); ++digit)
        next[digit] += count[digit];
    }
    std::uint32_t position = 0;
    for (std::uint32_t& first : next)
      position += std::exchange(first, position);
    auto* of_chunk = counts_.data();
    for (std::int64_t chunk = 0; chunk < chunks_; ++chunk, of_chunk += row) {
      for (std::size_t digit = 0; digit < next.size(); ++digit) {
        next[digit] += std::exchange(of_chunk[digit], next[digit]);
      }
    }
  }

  std::int64_t size_;
  std::int64_t chunk_;
  std::int64_t chunks_;
  Buffer<std::uint32_t> counts_;   // [chunk][digit]
};

void sort_packed(const Packing& pairs, std::int64_t size, std::vector<Digit> digits, int widest) {
  for (Digit& digit : digits)
    digit.shift += pairs.value_bits;
  Buffer<std::uint64_t> spare(size);
  const Packed keys{pairs.keys};
  const Packed other{spare.data()};
  Sorter sorter(size, widest);
  // The last pass may not write the keys that it reads, so an odd number of passes ends in the
  // spare memory and is copied.
  const bool even = digits.size() % 2 == 0;
  sorter.sort(pairs, other, digits.front());
  for (std::size_t i = 1; i + (even ? 1 : 0) < digits.size(); ++i) {
    sorter.sort(i % 2 == 1 ? other : keys, i % 2 == 1 ? keys : other, digits[i]);
  }
  if (even) {
    sorter.sort(other, pairs, digits.back());
  } else {
    sorter.copy(other, pairs);
  }
}

void sort_apart(const Apart& pairs, std::int64_t size, const std::vector<Digit>& digits,
                int widest) {
  Buffer<std::uint64_t> spare_keys(size);
  Buffer<std::int32_t> spare_values(size);
  Apart from = pairs;
  Apart to{spare_keys.data(), spare_values.data()};
  Sorter sorter(size, widest);
  for (const Digit digit : digits) {
    sorter.sort(from, to, digit);
    std::swap(from, to);
  }
  if (from.keys != pairs.keys) sorter.copy(from, to);
}

}   // namespace

void radix_sort_pairs(std::span<std::uint64_t> keys, std::span<std::int32_t> values, int bits) {
  PUMICE_ENSURES(keys.size() == values.size(), keys.size(), " keys, ", values.size(), " values");
  PUMICE_ENSURES(bits >= 0 && bits <= 64, "sorting by ", bits, " bits");
  PUMICE_ENSURES(keys.size() <= std::size_t{1} << 32, "sorting ", keys.size(), " keys");
  const auto size = static_cast<std::int64_t>(keys.size());
  if (size < 2 || bits == 0) return;

  const Survey found = survey(keys, values);
  const std::uint64_t looked_at = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  if ((found.differing & looked_at) == 0) return;
  const int widest = size < kFew ? kNarrowDigitBits : kWideDigitBits;
  const std::vector<Digit> digits = digits_for(found.differing & looked_at, widest);
  const auto value_bits = static_cast<int>(std::bit_width(found.values));
  if (static_cast<int>(std::bit_width(found.keys)) + value_bits <= 64) {
    sort_packed({keys.data(), values.data(), value_bits}, size, digits, widest);
  } else {
    sort_apart({keys.data(), values.data()}, size, digits, widest);
  }
}

}   // namespace pumice
