// Features at arbitrary points between cells.
//
//      +----+----+      The centre of a cell is at its integer coordinate: a point at (2.0, 5.0) is
//      | a *| b  |      in the middle of cell (2, 5) and sees it alone; one at (2.5, 5.0) sees half
//      +----+----+      of (2, 5) and half of (3, 5). (MinkowskiEngine's convention; who counts
//      | c  | d  |      from corners subtracts 0.5.)
//      +----+----+
//       * sees a, b, c, d with weights that fall linearly to 0 at a distance of one cell
#pragma once

#include <cstdint>

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/core/results.hpp>

namespace pumice {

enum class Interpolation : unsigned char {
  linear,    // the 2^D surrounding cells, multilinear
  nearest,   // the cell floor(position + 0.5)
};

struct InterpolationOptions {
  Interpolation mode = Interpolation::linear;
  /// Absent cells count as 0. With `renormalize` the weights of the present ones are divided by
  /// their sum instead; a point with no present cell stays 0.
  bool renormalize = false;
};

/// Which rows each point sees, and how much of each. Reusable for all features on the same rows. It
/// may be a caller's own: numbers that are no rows are refused as take_rows does
/// (pumice/ops/rows.hpp).
struct InterpolationMap {
  Tensor rows;      // i32 [P, corners]: row, -1 for an absent cell; corners = 2^D or 1
  Tensor weights;   // [P, corners], dtype of the points; 0 for an absent cell
  std::int64_t in_rows = 0;
};

struct InterpolationMapPlaces {
  Place rows{};
  Place weights{};
};

/// Looks at a map's tensors.
struct InterpolationMapView {
  InterpolationMapView() = default;
  InterpolationMapView(ConstTensorView its_rows, ConstTensorView its_weights, std::int64_t of_rows)
      : rows(its_rows), weights(its_weights), in_rows(of_rows) {}
  InterpolationMapView(const InterpolationMap& map)   // NOLINT(google-explicit-constructor)
      : InterpolationMapView(map.rows, map.weights, map.in_rows) {}

  ConstTensorView rows{};
  ConstTensorView weights{};
  std::int64_t in_rows = 0;
};

/// points: f32 or f64 [P, 1 + D]: batch index, then the position in cells of `set`. UserError for
/// a position that is not finite and for a batch index that is not a whole number in the batch. On
/// a device, such points see NaN, and the next call that waits for the stream raises the error.
InterpolationMap interpolation_map(const CoordinateSet& set, ConstTensorView points,
                                   const InterpolationOptions& options = {},
                                   const InterpolationMapPlaces& places = {});
/// features: [map.in_rows, C] -> [P, C].
Tensor interpolate(ConstTensorView features, const InterpolationMapView& map,
                   const Place& place = {});
/// Gradient of the features, [map.in_rows, C].
Tensor interpolate_gradient(ConstTensorView grad_output, const InterpolationMapView& map,
                            const Place& place = {});

}   // namespace pumice
