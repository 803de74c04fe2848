// The numbers of rows and the sizes of machines that choices tell apart. What is compiled ahead for
// an architecture goes through all of them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace pumice::cuda {

// Of devices from Ampere on, from the smallest card of a notebook to the largest of a data centre.
inline constexpr std::int32_t kFewestMultiprocessors = 16;
inline constexpr std::int32_t kMostMultiprocessors = 192;

inline constexpr int kRowBits = 5;   // that rounded_rows keeps
inline constexpr int kMostRowBits = 40;

constexpr int dropped_bits(std::int64_t rows) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows))) - kRowBits;
}

/// Calls `pick(rows)` for every rounded number of rows, until it returns false.
template <class Pick> void for_all_rows(Pick&& pick) {
  std::int64_t rows = 0;
  while (rows <= std::int64_t{1} << kMostRowBits && pick(rows))
    rows += std::int64_t{1} << std::max(dropped_bits(rows), 0);   // the next that counts
}

}   // namespace pumice::cuda
