// Interpolation loops on the CPU. Arguments are checked by the caller.
#pragma once

#include <pumice/ops/interpolation.hpp>

namespace pumice::cpu {

/// Fills map.rows and map.weights; UserError naming the point for a bad one.
void find_corners(const CoordinateSet& set, ConstTensorView points,
                  const InterpolationOptions& options, InterpolationMap& map);
void interpolate(ConstTensorView features, const InterpolationMapView& map, TensorView output);
void interpolate_gradient(ConstTensorView grad_output, const InterpolationMapView& map,
                          TensorView grad_features);

}   // namespace pumice::cpu
