// Bounds and validation of coordinate lists.
#include "coords/cpu/coordinate_checks.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include <pumice/core/parallel.hpp>

namespace pumice {
namespace {

constexpr std::int64_t kChunk = std::int64_t{1} << 14;

/// First row with `value` in `column`; only asked for once it is known to be there.
std::int64_t row_with(ConstTensorView coordinates, std::int64_t column, std::int32_t value) {
  const auto* data = coordinates.data<std::int32_t>();
  std::int64_t row = 0;
  while (data[row * coordinates.extent(1) + column] != value)
    ++row;
  return row;
}

}   // namespace

ColumnBounds column_bounds(ConstTensorView coordinates) {
  const auto columns = static_cast<std::size_t>(coordinates.extent(1));
  const std::int64_t rows = coordinates.rows();
  const auto* data = coordinates.data<std::int32_t>();
  std::vector<ColumnBounds> partial(static_cast<std::size_t>((rows + kChunk - 1) / kChunk));
  const auto take_in = [&](ColumnBounds& into, const std::int32_t* low, const std::int32_t* high) {
    for (std::size_t column = 0; column < columns; ++column) {
      into.low[column] = std::min(into.low[column], low[column]);
      into.high[column] = std::max(into.high[column], high[column]);
    }
  };
  ColumnBounds nothing;
  nothing.low.fill(std::numeric_limits<std::int32_t>::max());
  nothing.high.fill(std::numeric_limits<std::int32_t>::min());
  parallel_for(rows, kChunk, [&](std::int64_t begin, std::int64_t end) {
    ColumnBounds mine = nothing;
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int32_t* cell = data + row * static_cast<std::int64_t>(columns);
      take_in(mine, cell, cell);
    }
    partial[static_cast<std::size_t>(begin / kChunk)] = mine;
  });
  ColumnBounds all = nothing;
  for (const ColumnBounds& chunk : partial)
    take_in(all, chunk.low.data(), chunk.high.data());
  return all;
}

void check_shape(ConstTensorView coordinates) {
  PUMICE_EXPECTS(coordinates.dtype() == DType::i32,
                 "coordinates: dtype = ", name_of(coordinates.dtype()), "; convert them to i32");
  PUMICE_EXPECTS(coordinates.rank() == 2 && coordinates.extent(1) >= 2 &&
                     coordinates.extent(1) <= 1 + kMaxDimension,
                 "coordinates: shape = ", to_string(coordinates.shape()),
                 "; expected [N, 1 + D], the batch index and then D = 1 to ", kMaxDimension,
                 " axes");
  PUMICE_EXPECTS(coordinates.rows() <= std::numeric_limits<std::int32_t>::max(),
                 "coordinates: ", coordinates.rows(),
                 " rows; a set holds at most 2147483647, split the batch");
}

void check_options(int dimension, const CoordinateOptions& options) {
  for (int axis = 0; axis < dimension; ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    PUMICE_EXPECTS(options.stride[at] >= 1, "stride[", axis, "] = ", options.stride[at],
                   ": a cell is at least 1 cell of the finest level long");
    PUMICE_EXPECTS(!options.spatial_shape || (*options.spatial_shape)[at] >= 1, "spatial_shape[",
                   axis, "] = ", options.spatial_shape ? (*options.spatial_shape)[at] : 0,
                   ": every extent of the grid must be at least 1");
  }
  PUMICE_EXPECTS(!options.batch_size || *options.batch_size >= 0,
                 "batch_size = ", options.batch_size.value_or(0),
                 ": give the number of batch items, or none");
  if (!options.bounds) return;
  PUMICE_EXPECTS(options.batch_size.has_value(),
                 "bounds are declared without batch_size; declare the number of batch items too");
  for (int axis = 0; axis < dimension; ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    PUMICE_EXPECTS(options.bounds->low[at] <= options.bounds->high[at], "bounds on axis ", axis,
                   " go from ", options.bounds->low[at], " to ", options.bounds->high[at],
                   "; give the smallest coordinate first");
  }
}

void check_batch(ConstTensorView coordinates, std::int32_t low, std::int32_t high,
                 const CoordinateOptions& options) {
  PUMICE_EXPECTS(
      low >= 0, "coordinates: batch index ", low, " in row ", row_with(coordinates, 0, low),
      "; number batch items from 0 in the first column, and put a column of 0 there where "
      "coordinates have none");
  PUMICE_EXPECTS(high < std::numeric_limits<std::int32_t>::max(), "coordinates: batch index ", high,
                 " in row ", row_with(coordinates, 0, high),
                 "; the largest possible is 2147483646");
  PUMICE_EXPECTS(!options.batch_size || high < *options.batch_size, "coordinates: batch index ",
                 high, " in row ", row_with(coordinates, 0, high),
                 " where batch_size = ", options.batch_size.value_or(0), "; raise batch_size to ",
                 std::int64_t{high} + 1, " or drop it");
}

void check_extent(ConstTensorView coordinates, int axis, std::int32_t low, std::int32_t high,
                  std::int32_t extent) {
  const std::int32_t outside = low < 0 ? low : high;
  PUMICE_EXPECTS(low >= 0 && high < extent, "coordinates: ", outside, " on axis ", axis, " in row ",
                 row_with(coordinates, axis + 1, outside),
                 " lies outside spatial_shape, which has ", extent,
                 " cells there; crop the points, shift them to 0 or drop spatial_shape");
}

ColumnBounds allowed_columns(int dimension, const CoordinateOptions& options) {
  ColumnBounds allowed{};
  allowed.high[0] = *options.batch_size - 1;
  for (std::size_t at = 0; at < static_cast<std::size_t>(dimension); ++at) {
    allowed.low[at + 1] = options.bounds->low[at];
    allowed.high[at + 1] = options.bounds->high[at];
    if (!options.spatial_shape) continue;
    allowed.low[at + 1] = std::max(allowed.low[at + 1], 0);
    allowed.high[at + 1] = std::min(allowed.high[at + 1], (*options.spatial_shape)[at] - 1);
  }
  return allowed;
}

void refuse_first(ConstTensorView coordinates, const ColumnBounds& allowed,
                  const CoordinateOptions& options) {
  const auto* cell = coordinates.data<std::int32_t>();
  const int dimension = static_cast<int>(coordinates.extent(1)) - 1;
  for (std::int64_t row = 0; row < coordinates.rows(); ++row, cell += 1 + dimension) {
    PUMICE_EXPECTS(cell[0] >= 0 && cell[0] <= allowed.high[0], "coordinates: batch index ", cell[0],
                   " in row ", row, " where batch_size = ", *options.batch_size,
                   "; number batch items from 0 and raise batch_size to the number there are");
    for (int axis = 0; axis < dimension; ++axis) {
      const auto at = static_cast<std::size_t>(axis) + 1;
      PUMICE_EXPECTS(cell[at] >= allowed.low[at] && cell[at] <= allowed.high[at],
                     "coordinates: ", cell[at], " on axis ", axis, " in row ", row,
                     " lies outside the declared bounds, ", allowed.low[at], " to ",
                     allowed.high[at], "; crop the points or declare wider bounds");
    }
  }
}

}   // namespace pumice
