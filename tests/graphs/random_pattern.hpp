// Patterns for tests: the awkward ones by hand, the rest at random.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <pumice/core/random.hpp>
#include <pumice/core/tensor.hpp>
#include <pumice/graphs/csr.hpp>

namespace pumice::test {

inline Tensor i64(const std::vector<std::int64_t>& numbers) {
  Tensor made({static_cast<std::int64_t>(numbers.size())}, DType::i64);
  std::ranges::copy(numbers, made.span<std::int64_t>().begin());
  return made;
}

inline Tensor i32(const std::vector<std::int64_t>& numbers) {
  Tensor made({static_cast<std::int64_t>(numbers.size())}, DType::i32);
  std::ranges::transform(numbers, made.span<std::int32_t>().begin(),
                         [](std::int64_t number) { return static_cast<std::int32_t>(number); });
  return made;
}

struct PatternCase {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<std::int64_t> row;   // of each entry
  std::vector<std::int64_t> column;

  std::int64_t entries() const { return static_cast<std::int64_t>(row.size()); }
  Csr csr() const { return Csr(rows, columns, i64(row), i64(column)); }
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs() const {
    std::vector<std::pair<std::int64_t, std::int64_t>> result;
    for (std::size_t e = 0; e < row.size(); ++e)
      result.emplace_back(row[e], column[e]);
    return result;
  }
};

/// `entries` anywhere, in any order; some repeat, some rows and columns have none.
inline PatternCase random_pattern(std::int64_t rows, std::int64_t columns, std::int64_t entries,
                                  std::uint64_t seed) {
  Random random(seed);
  PatternCase made{"random " + std::to_string(seed), rows, columns, {}, {}};
  for (std::int64_t e = 0; e < entries; ++e) {
    made.row.push_back(random.integer(0, rows - 1));
    made.column.push_back(random.integer(0, columns - 1));
  }
  return made;
}

inline std::vector<PatternCase> pattern_cases() {
  std::vector<PatternCase> cases{
      {"nothing at all", 0, 0, {}, {}},
      {"rows without entries", 5, 3, {}, {}},
      {"one entry", 1, 1, {0}, {0}},
      {"an entry that stands three times", 2, 2, {1, 1, 1}, {0, 0, 0}},
      {"loops", 3, 3, {0, 1, 2}, {0, 1, 2}},
      {"descending", 4, 4, {3, 3, 2, 0}, {3, 0, 1, 2}},
  };
  PatternCase heavy{"one row has all", 33, 500, {}, {}};
  for (std::int64_t e = 0; e < 3000; ++e) {
    heavy.row.push_back(17);
    heavy.column.push_back(e * 7 % 500);
  }
  cases.push_back(std::move(heavy));
  cases.push_back(random_pattern(31, 33, 200, 1));
  cases.push_back(random_pattern(1000, 7, 900, 2));
  cases.push_back(random_pattern(65, 65'537, 5000, 3));
  return cases;
}

}   // namespace pumice::test
