// What `CoordinateSet::create` promises to refuse, and the bounds that takes.
#pragma once

#include <array>
#include <cstdint>

#include <pumice/coords/coordinate_set.hpp>

namespace pumice {

/// Smallest and largest value of each column of a coordinate list, the batch index first.
struct ColumnBounds {
  std::array<std::int32_t, kMaxDimension + 1> low;
  std::array<std::int32_t, kMaxDimension + 1> high;
};

ColumnBounds column_bounds(ConstTensorView coordinates);

/// int32 [N, 1 + D] with D = 1 to 4.
void check_shape(ConstTensorView coordinates);
void check_options(int dimension, const CoordinateOptions& options);
/// Batch indices from `low` to `high`.
void check_batch(ConstTensorView coordinates, std::int32_t low, std::int32_t high,
                 const CoordinateOptions& options);
/// Coordinates from `low` to `high` on an axis whose spatial shape is `extent`.
void check_extent(ConstTensorView coordinates, int axis, std::int32_t low, std::int32_t high,
                  std::int32_t extent);

/// What a row may hold where bounds are declared.
ColumnBounds allowed_columns(int dimension, const CoordinateOptions& options);
/// Throws for the first row that is not allowed. Serial, so that it is the same row every time.
void refuse_first(ConstTensorView coordinates, const ColumnBounds& allowed,
                  const CoordinateOptions& options);

}   // namespace pumice
