// Patterns of all kinds by a seed, rows of features that must not be read, and how far a result is
// from its reference: for tests of many thousand problems.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <pumice/core/random.hpp>
#include <pumice/core/tensor.hpp>

#include "graphs/random_pattern.hpp"

namespace pumice::test {

/// All kinds of structures: nothing, rows without entries, one row with all, loops, entries that
/// repeat, in any order and in order.
inline PatternCase drawn_pattern(Random& random, std::uint64_t seed) {
  const std::int64_t kind = random.integer(0, 9);
  const std::int64_t sizes[] = {0, 1, 31, 33, random.integer(2, 70)};
  const std::int64_t rows = sizes[random.integer(kind == 0 ? 0 : 1, 4)];
  const std::int64_t columns = sizes[random.integer(kind == 0 ? 0 : 1, 4)];
  std::int64_t entries = rows * columns == 0 ? 0 : random.integer(0, 4 * rows);
  if (kind == 1) entries = 0;
  PatternCase one = random_pattern(rows, columns, entries, seed);
  for (std::size_t e = 0; e < one.row.size(); ++e) {
    if (kind == 2) one.row[e] = rows / 2;                               // one row has all
    if (kind == 3) one.row[e] = one.row[e] / 7 * 7;                     // most rows have none
    if (kind == 4) one.column[e] = std::min(one.row[e], columns - 1);   // loops
    if (kind == 5 && e > 0 && e % 2 == 1)                               // every second again
      one.row[e] = one.row[e - 1], one.column[e] = one.column[e - 1];
    if (kind == 6) one.column[e] = one.column[e] / 9 * 9;   // isolated columns
  }
  if (kind == 7) std::ranges::sort(one.row);
  return one;
}

/// Rows of NaN where no entry leads.
inline void spoil_unread(Tensor& x, const std::vector<std::int64_t>& read) {
  const std::set<std::int64_t> used(read.begin(), read.end());
  const std::int64_t channels = x.view().extent(1);
  Tensor wide = x.to(DType::f64).clone();
  for (std::int64_t row = 0; row < x.rows(); ++row)
    if (!used.contains(row))
      std::fill_n(wide.data<double>() + row * channels, channels,
                  std::numeric_limits<double>::quiet_NaN());
  x = wide.to(x.dtype());
}

/// Empty, or which element is not as expected.
inline std::string difference(const Tensor& found, std::span<const double> expected,
                              double tolerance) {
  const Tensor wide = found.to(DType::f64);
  if (wide.elements() != static_cast<std::int64_t>(expected.size()))
    return "shape " + to_string(found.shape());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double is = wide.span<double>()[i];
    if (!(std::abs(is - expected[i]) <= tolerance * (1 + std::abs(expected[i]))))
      return "element " + std::to_string(i) + " is " + std::to_string(is) + " and not " +
             std::to_string(expected[i]);
  }
  return {};
}
inline std::string difference(const Tensor& found, const Tensor& expected, double tolerance) {
  if (found.shape() != expected.shape()) return "shape " + to_string(found.shape());
  return difference(found, expected.span<double>(), tolerance);
}

/// Memory that nobody cleared.
inline Tensor dirty(Shape shape, DType dtype) {
  return Tensor::full(shape, dtype, dtype == DType::i64 ? 77 : std::nan(""));
}

}   // namespace pumice::test
