// Validation, bounds and encoding of coordinate lists.
#include "coords/cpu/key_list.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <vector>

#include <pumice/core/parallel.hpp>

namespace pumice {
namespace {

constexpr std::int64_t kChunk = std::int64_t{1} << 14;

struct ColumnBounds {
  std::array<std::int32_t, kMaxDimension + 1> low;
  std::array<std::int32_t, kMaxDimension + 1> high;
};

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
  for (const ColumnBounds& chunk : partial) take_in(all, chunk.low.data(), chunk.high.data());
  return all;
}

/// First row with `value` in `column`; only asked for once it is known to be there.
std::int64_t row_with(ConstTensorView coordinates, std::int64_t column, std::int32_t value) {
  const auto* data = coordinates.data<std::int32_t>();
  std::int64_t row = 0;
  while (data[row * coordinates.extent(1) + column] != value) ++row;
  return row;
}

void check_shape(ConstTensorView coordinates) {
  PUMICE_EXPECTS(coordinates.dtype() == DType::i32, "coordinates: dtype = ",
                 name_of(coordinates.dtype()), "; convert them to i32");
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
  PUMICE_EXPECTS(!options.batch_size || *options.batch_size >= 0, "batch_size = ",
                 options.batch_size.value_or(0), ": give the number of batch items, or none");
}

void check_batch(ConstTensorView coordinates, std::int32_t low, std::int32_t high,
                 const CoordinateOptions& options) {
  PUMICE_EXPECTS(low >= 0, "coordinates: batch index ", low, " in row ",
                 row_with(coordinates, 0, low), "; number batch items from 0");
  PUMICE_EXPECTS(high < std::numeric_limits<std::int32_t>::max(), "coordinates: batch index ",
                 high, " in row ", row_with(coordinates, 0, high),
                 "; the largest possible is 2147483646");
  PUMICE_EXPECTS(!options.batch_size || high < *options.batch_size, "coordinates: batch index ",
                 high, " in row ", row_with(coordinates, 0, high),
                 " where batch_size = ", options.batch_size.value_or(0), "; raise batch_size to ",
                 std::int64_t{high} + 1, " or drop it");
}

void check_extent(ConstTensorView coordinates, int axis, std::int32_t low, std::int32_t high,
                  std::int32_t extent) {
  const std::int32_t outside = low < 0 ? low : high;
  PUMICE_EXPECTS(low >= 0 && high < extent, "coordinates: ", outside, " on axis ", axis,
                 " in row ", row_with(coordinates, axis + 1, outside),
                 " lies outside spatial_shape, which has ", extent,
                 " cells there; crop the points, shift them to 0 or drop spatial_shape");
}

}  // namespace

KeyLayout roomy_layout(int dimension, const Bounds& bounds, std::int64_t batch_size) {
  const int batch_bits =
      batch_size <= 1 ? 0 : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(batch_size) - 1));
  const auto most_bits = [&](int levels) {   // aligning the origin costs at most one bit more
    int total = batch_bits;
    for (int axis = 0; axis < dimension; ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      const auto extent = static_cast<std::uint64_t>(bounds.high[at] - bounds.low[at]);
      total += std::max(static_cast<int>(std::bit_width(extent)) + 1,
                        block_axis_bits(dimension, axis) + levels);
    }
    return total;
  };
  int levels = kDefaultHalvings;
  while (levels > 0 && most_bits(levels) > 63) --levels;
  return layout_for_bounds(dimension, bounds.low, bounds.high, batch_size, levels);
}

Bounds bounds_of(ConstTensorView coordinates) {
  Bounds bounds;
  if (coordinates.rows() == 0) return bounds;
  const ColumnBounds columns = column_bounds(coordinates);
  for (std::size_t axis = 0; axis + 1 < static_cast<std::size_t>(coordinates.extent(1)); ++axis) {
    bounds.low[axis] = columns.low[axis + 1];
    bounds.high[axis] = columns.high[axis + 1];
  }
  return bounds;
}

KeyList encode_coordinates(ConstTensorView coordinates, const CoordinateOptions& options) {
  check_shape(coordinates);
  const int dimension = static_cast<int>(coordinates.extent(1)) - 1;
  const std::int64_t rows = coordinates.rows();
  check_options(dimension, options);

  KeyList list;
  list.batch_size = options.batch_size.value_or(0);
  Bounds bounds;
  if (rows > 0) {
    const ColumnBounds columns = column_bounds(coordinates);
    check_batch(coordinates, columns.low[0], columns.high[0], options);
    list.batch_size = options.batch_size.value_or(columns.high[0] + 1);
    for (int axis = 0; axis < dimension; ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      bounds.low[at] = columns.low[at + 1];
      bounds.high[at] = columns.high[at + 1];
      if (options.spatial_shape) {
        check_extent(coordinates, axis, columns.low[at + 1], columns.high[at + 1],
                     (*options.spatial_shape)[at]);
      }
    }
  }
  list.layout = roomy_layout(dimension, bounds, list.batch_size);
  list.keys = Buffer<std::uint64_t>(rows);
  const auto* data = coordinates.data<std::int32_t>();
  parallel_for(rows, kChunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int32_t* cell = data + row * (1 + dimension);
      list.keys[row] = encode_key(list.layout, cell[0], cell + 1);
    }
  });
  return list;
}

Buffer<std::uint64_t> keys_in_layout(const CoordinateSet& set, const KeyLayout& layout) {
  const KeyLayout& from = set.layout();
  const auto old_keys = set.sorted_keys();
  Buffer<std::uint64_t> keys(set.size());
  parallel_for(set.size(), kChunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t rank = begin; rank < end; ++rank) {
      const std::uint64_t key = old_keys[static_cast<std::size_t>(rank)];
      AxisBounds cell{};
      for (int axis = 0; axis < layout.dimension; ++axis) {
        cell[static_cast<std::size_t>(axis)] = decode_axis(from, key, axis);
      }
      keys[rank] = encode_key(layout, decode_batch(from, key), cell.data());
    }
  });
  return keys;
}

Buffer<std::int32_t> identity_order(std::int64_t size) {
  Buffer<std::int32_t> order(size);
  parallel_for(size, kChunk, [&](std::int64_t begin, std::int64_t end) {
    std::iota(order.data() + begin, order.data() + end, static_cast<std::int32_t>(begin));
  });
  return order;
}

}  // namespace pumice
