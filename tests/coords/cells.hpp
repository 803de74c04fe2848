// Coordinates for tests: written down, or drawn at random.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/core/random.hpp>

#include "support/message_of.hpp"

namespace pumice::test {

using Cell = std::vector<std::int32_t>;   // batch item, then one coordinate per axis
using Cells = std::vector<Cell>;

inline Tensor tensor_of(const Cells& cells, int dimension) {
  std::vector<std::int32_t> values;
  for (const Cell& cell : cells)
    values.insert(values.end(), cell.begin(), cell.end());
  return Tensor::from(std::span<const std::int32_t>(values),
                      Shape{static_cast<std::int64_t>(cells.size()), 1 + dimension});
}

inline Cells cells_of(const CoordinateSet& set) {
  const auto columns = static_cast<std::size_t>(set.dimension()) + 1;
  const auto values = set.coordinates().span<std::int32_t>();
  Cells cells(static_cast<std::size_t>(set.size()));
  for (std::size_t row = 0; row < cells.size(); ++row) {
    const auto cell = values.subspan(row * columns, columns);
    cells[row].assign(cell.begin(), cell.end());
  }
  return cells;
}

/// `count` cells in a cube around 0, batch items 0 to 2; they may repeat.
inline Cells random_cells(std::size_t count, int dimension, std::int32_t extent, Random& random) {
  Cells cells(count);
  for (Cell& cell : cells) {
    cell.push_back(static_cast<std::int32_t>(random.integer(0, 2)));
    for (int axis = 0; axis < dimension; ++axis) {
      cell.push_back(static_cast<std::int32_t>(random.integer(-extent / 2, extent - extent / 2)));
    }
  }
  return cells;
}

/// The distinct ones, in random order.
inline Cells distinct_cells(const Cells& cells, Random& random) {
  const std::set<Cell> all(cells.begin(), cells.end());
  Cells distinct(all.begin(), all.end());
  for (std::size_t i = distinct.size(); i > 1; --i) {
    std::swap(
        distinct[i - 1],
        distinct[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(i) - 1))]);
  }
  return distinct;
}

}   // namespace pumice::test
