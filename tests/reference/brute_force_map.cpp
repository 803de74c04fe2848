// Loops over all cells and offsets.
#include "reference/brute_force_map.hpp"

#include <cmath>
#include <cstddef>

namespace pumice::brute_force {
namespace {

std::map<Cell, std::int64_t> rows_of(const Cells& cells) {
  std::map<Cell, std::int64_t> rows;
  for (std::size_t row = 0; row < cells.size(); ++row) {
    rows.emplace(cells[row], static_cast<std::int64_t>(row));
  }
  return rows;
}

/// The fine cell that a coarse one meets through an offset.
Cell fine_cell(const Cell& coarse, const std::vector<std::int64_t>& offset, const Kernel& kernel) {
  Cell fine = coarse;
  for (std::size_t axis = 0; axis < offset.size(); ++axis) {
    fine[axis + 1] = coarse[axis + 1] * kernel.stride[axis] - kernel.padding[axis] +
                     offset[axis] * kernel.dilation[axis];
  }
  return fine;
}

bool inside(const Cell& cell, const std::optional<Extents>& shape) {
  if (!shape) return true;
  for (std::size_t axis = 0; axis < shape->size(); ++axis) {
    if (cell[axis + 1] < 0 || cell[axis + 1] >= (*shape)[axis]) return false;
  }
  return true;
}

std::int64_t floor_of(std::int64_t value, std::int64_t divisor) {
  return static_cast<std::int64_t>(
      std::floor(static_cast<long double>(value) / static_cast<long double>(divisor)));
}

}   // namespace

std::vector<std::vector<std::int64_t>> box_offsets(const std::vector<std::int64_t>& size,
                                                   bool cross) {
  std::vector<std::vector<std::int64_t>> offsets{{}};
  for (const std::int64_t extent : size) {
    std::vector<std::vector<std::int64_t>> longer;
    for (const auto& start : offsets) {
      for (std::int64_t i = 0; i < extent; ++i) {
        longer.push_back(start);
        longer.back().push_back(i);
      }
    }
    offsets = longer;
  }
  if (!cross) return offsets;
  std::vector<std::vector<std::int64_t>> on_axes;
  for (const auto& offset : offsets) {
    int away = 0;
    for (std::size_t axis = 0; axis < size.size(); ++axis) {
      if (offset[axis] != (size[axis] - 1) / 2) ++away;
    }
    if (away < 2) on_axes.push_back(offset);
  }
  return on_axes;
}

std::set<Pair> pairs(const Cells& in, const Cells& out, const Kernel& kernel) {
  const auto in_rows = rows_of(in);
  std::set<Pair> result;
  for (std::size_t row = 0; row < out.size(); ++row) {
    for (std::size_t k = 0; k < kernel.offsets.size(); ++k) {
      const auto found = in_rows.find(fine_cell(out[row], kernel.offsets[k], kernel));
      if (found != in_rows.end()) result.emplace(k, found->second, row);
    }
  }
  return result;
}

std::set<Pair> transposed_pairs(const Cells& coarse, const Cells& fine, const Kernel& kernel) {
  std::set<Pair> result;
  for (const auto& [offset, fine_row, coarse_row] : pairs(fine, coarse, kernel)) {
    result.emplace(offset, coarse_row, fine_row);
  }
  return result;
}

std::set<Cell> dilating_outputs(const Cells& in, const Kernel& kernel,
                                const std::optional<Extents>& shape) {
  std::set<Cell> result;
  for (const Cell& cell : in) {
    for (const auto& offset : kernel.offsets) {
      Cell out = cell;
      for (std::size_t axis = 0; axis < offset.size(); ++axis) {
        const std::int64_t scaled =
            cell[axis + 1] + kernel.padding[axis] - offset[axis] * kernel.dilation[axis];
        out[axis + 1] = floor_of(scaled, kernel.stride[axis]);
      }
      const bool meets = fine_cell(out, offset, kernel) == cell;   // the division left no rest
      if (meets && inside(out, shape)) result.insert(out);
    }
  }
  return result;
}

std::set<Cell> cell_outputs(const Cells& in, const std::vector<std::int64_t>& stride,
                            const std::optional<Extents>& shape) {
  std::set<Cell> result;
  for (Cell cell : in) {
    for (std::size_t axis = 0; axis < stride.size(); ++axis) {
      cell[axis + 1] = floor_of(cell[axis + 1], stride[axis]);
    }
    if (inside(cell, shape)) result.insert(cell);
  }
  return result;
}

std::set<Cell> generated_outputs(const Cells& coarse, const Kernel& kernel,
                                 const std::optional<Extents>& shape) {
  std::set<Cell> result;
  for (const Cell& cell : coarse) {
    for (const auto& offset : kernel.offsets) {
      const Cell fine = fine_cell(cell, offset, kernel);
      if (inside(fine, shape)) result.insert(fine);
    }
  }
  return result;
}

}   // namespace pumice::brute_force
