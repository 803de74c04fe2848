// Validation, bounds and encoding of coordinate lists.
#include "coords/cpu/key_list.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <numeric>

#include <pumice/core/parallel.hpp>

#include "coords/cpu/coordinate_checks.hpp"

namespace pumice {
namespace {

constexpr std::int64_t kChunk = std::int64_t{1} << 14;

/// Bounds as the coordinates have them; the batch size too, where it is not given.
Bounds measure(ConstTensorView coordinates, const CoordinateOptions& options,
               std::int32_t& batch_size) {
  Bounds bounds;
  if (coordinates.rows() == 0) return bounds;
  const ColumnBounds columns = column_bounds(coordinates);
  check_batch(coordinates, columns.low[0], columns.high[0], options);
  batch_size = options.batch_size.value_or(columns.high[0] + 1);
  for (int axis = 0; axis + 1 < coordinates.extent(1); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    bounds.low[at] = columns.low[at + 1];
    bounds.high[at] = columns.high[at + 1];
    if (options.spatial_shape) {
      check_extent(coordinates, axis, columns.low[at + 1], columns.high[at + 1],
                   (*options.spatial_shape)[at]);
    }
  }
  return bounds;
}

/// Encodes rows in `layout`. Where `allowed` is given a row may lie outside, and whether one does
/// is returned; its key is meaningless.
template <int kDimension>
bool encode(ConstTensorView coordinates, const KeyLayout& layout, const ColumnBounds* allowed,
            std::uint64_t* keys) {
  constexpr std::int64_t kColumns = 1 + kDimension;
  const auto* data = coordinates.data<std::int32_t>();
  std::atomic<bool> outside = false;
  parallel_for(coordinates.rows(), kChunk, [&](std::int64_t begin, std::int64_t end) {
    bool any = false;
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int32_t* cell = data + row * kColumns;
      if (allowed != nullptr) {
        for (std::size_t column = 0; column < kColumns; ++column) {
          any |= (cell[column] < allowed->low[column]) | (cell[column] > allowed->high[column]);
        }
      }
      keys[row] = encode_key(layout, cell[0], cell + 1);
    }
    if (any) outside.store(true, std::memory_order_relaxed);
  });
  return outside;
}

}   // namespace

KeyLayout roomy_layout(int dimension, const Bounds& bounds, std::int64_t batch_size) {
  const int batch_bits =
      batch_size <= 1
          ? 0
          : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(batch_size) - 1));
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
  while (levels > 0 && most_bits(levels) > 63)
    --levels;
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
  ColumnBounds allowed{};
  if (options.bounds) {
    std::copy_n(options.bounds->low.begin(), dimension, bounds.low.begin());
    std::copy_n(options.bounds->high.begin(), dimension, bounds.high.begin());
    allowed = allowed_columns(dimension, options);
  } else {
    bounds = measure(coordinates, options, list.batch_size);
  }
  list.layout = roomy_layout(dimension, bounds, list.batch_size);
  list.keys = Buffer<std::uint64_t>(rows);
  const auto encode_rows = [&](auto&& encode_as) {
    return encode_as(coordinates, list.layout, options.bounds ? &allowed : nullptr,
                     list.keys.data());
  };
  const bool outside = dimension == 1   ? encode_rows(encode<1>)
                       : dimension == 2 ? encode_rows(encode<2>)
                       : dimension == 3 ? encode_rows(encode<3>)
                                        : encode_rows(encode<4>);
  if (outside) refuse_first(coordinates, allowed, options);
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

}   // namespace pumice
