// The shape of a part, and a walk over its positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include <pumice/core/error.hpp>
#include <pumice/formats/decomposed.hpp>

namespace pumice {

/// UserError, in the name of `op`, for sizes that no part has.
inline void check_shape(const PartShape& shape, std::size_t part, const char* op) {
  constexpr std::int64_t kMostPositions = std::int64_t{1} << 26;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const auto is_between = [](std::int64_t number, std::int64_t least, std::int64_t most) {
    return number >= least && number <= most;
  };
  PUMICE_EXPECTS(
      is_between(shape.block_rows, 1, kMost) && is_between(shape.block_columns, 1, kMost) &&
          shape.block_rows <= kMostPositions / shape.block_columns,
      op, ": part ", part, " has blocks of ", shape.block_rows, " x ", shape.block_columns,
      ": give at least 1 x 1 and at most ", kMostPositions, " positions");
  PUMICE_EXPECTS(is_between(shape.width, 0, kMost) && is_between(shape.multiple, 1, kMost), op,
                 ": part ", part, " has a width of ", shape.width, " and a multiple of ",
                 shape.multiple,
                 ": give a width from 1 on, or 0 for none, and a multiple from 1 on");
}

/// body(position, number or -1, row, column) for every position, line by line; columns of padded
/// slots are negative, rows and columns of holes may lie beyond the pattern.
template <class Body> void for_positions(const PartView& part, Body&& body) {
  const PartShape& shape = part.shape;
  for (std::int64_t line = 0; line < part.lines(); ++line) {
    const std::int64_t first_row = part.row[static_cast<std::size_t>(line)] * shape.block_rows;
    for (std::int64_t slot = part.first_slot(line); slot < part.end_slot(line); ++slot) {
      const std::int64_t first_column =
          part.column[static_cast<std::size_t>(slot)] * shape.block_columns;
      std::int64_t position = slot * shape.positions();
      for (std::int64_t i = 0; i < shape.block_rows; ++i) {
        for (std::int64_t j = 0; j < shape.block_columns; ++j, ++position)
          body(position, part.number_at(position), first_row + i, first_column + j);
      }
    }
  }
}

}   // namespace pumice
