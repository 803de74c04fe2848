// Checks the arguments of interpolation and hands them to the back end.
#include <pumice/ops/interpolation.hpp>

#include "coords/cuda/coordinate_set.hpp"
#include "ops/checks.hpp"
#include "ops/cpu/interpolation.hpp"
#include "ops/cuda/rows.hpp"
#include "ops/cuda/sources.hpp"

namespace pumice {
namespace {

void check_map(const InterpolationMapView& map, const char* op) {
  PUMICE_EXPECTS(map.rows.defined() && map.weights.defined() && map.rows.dtype() == DType::i32 &&
                     map.rows.shape().rank() == 2 && map.rows.shape() == map.weights.shape(),
                 op, ": the map is incomplete; pass what interpolation_map returned");
  PUMICE_EXPECTS(map.weights.dtype() == DType::f32 || map.weights.dtype() == DType::f64, op,
                 ": weights of the map hold ", name_of(map.weights.dtype()),
                 "; they are f32 or f64, as the points are");
  PUMICE_EXPECTS(map.in_rows >= 0, op, ": in_rows of the map = ", map.in_rows,
                 "; it cannot be negative");
}

void check_device(ConstTensorView features, const InterpolationMapView& map, const char* op,
                  const char* name) {
  checks::same_device(map.rows, features, op, "the map", name);
  checks::same_device(map.weights, features, op, "the map", name);
}

}   // namespace

InterpolationMap interpolation_map(const CoordinateSet& set, ConstTensorView points,
                                   const InterpolationOptions& options,
                                   const InterpolationMapPlaces& places) {
  PUMICE_EXPECTS(points.dtype() == DType::f32 || points.dtype() == DType::f64,
                 "interpolation_map: points holds ", name_of(points.dtype()),
                 "; positions are f32 or f64");
  PUMICE_EXPECTS(points.rank() == 2 && points.extent(1) == set.dimension() + 1,
                 "interpolation_map: points has shape ", to_string(points.shape()),
                 "; it must be [P, ", set.dimension() + 1, "]: batch index, then ", set.dimension(),
                 " coordinates");
  const std::int64_t corners =
      options.mode == Interpolation::linear ? std::int64_t{1} << set.dimension() : 1;
  const Shape shape{points.rows(), corners};
  checks::same_device(points, set, "interpolation_map", "points");
  const StreamView stream = points.stream();
  InterpolationMap map{places.rows.make(shape, DType::i32, stream, "places.rows"),
                       places.weights.make(shape, points.dtype(), stream, "places.weights"),
                       set.rows().capacity()};
  if (checks::on_cuda(points)) {
    jit::DeviceRunner runner = cuda::runner_for(points);
    cuda::find_corners(runner, cuda::ref_of(set), set.batch_size(), points, options.renormalize,
                       map.rows.view(), map.weights.view());
  } else {
    cpu::find_corners(set, points, options, map);
  }
  return map;
}

Tensor interpolate(ConstTensorView features, const InterpolationMapView& map, const Place& place) {
  check_map(map, "interpolate");
  checks::matrix(features, "interpolate", "features");
  check_device(features, map, "interpolate", "features");
  checks::extent(features, 0, map.in_rows, "interpolate", "features",
                 "the rows the map was made for");
  Tensor output =
      place.make({map.rows.rows(), features.extent(1)}, features.dtype(), features.stream());
  if (checks::on_cuda(features)) {
    jit::DeviceRunner runner = cuda::runner_for(features);
    cuda::interpolate(runner, features, map, output.view());
  } else {
    cpu::interpolate(features, map, output.view());
  }
  return output;
}

Tensor interpolate_gradient(ConstTensorView grad_output, const InterpolationMapView& map,
                            const Place& place) {
  check_map(map, "interpolate_gradient");
  checks::matrix(grad_output, "interpolate_gradient", "grad_output");
  check_device(grad_output, map, "interpolate_gradient", "grad_output");
  checks::extent(grad_output, 0, map.rows.rows(), "interpolate_gradient", "grad_output",
                 "the points of the map");
  Tensor grad =
      place.make({map.in_rows, grad_output.extent(1)}, grad_output.dtype(), grad_output.stream());
  if (checks::on_cuda(grad_output)) {
    jit::DeviceRunner runner = cuda::runner_for(grad_output);
    cuda::interpolate_gradient(runner, grad_output, map, grad.view());
  } else {
    cpu::interpolate_gradient(grad_output, map, grad.view());
  }
  return grad;
}

}   // namespace pumice
