// Checks the arguments of pooling, makes its results and hands both to the back end.
#include <pumice/ops/pooling.hpp>

#include "formats/cuda/device_formats.hpp"
#include "ops/checks.hpp"
#include "ops/cpu/pooling.hpp"
#include "ops/cuda/pooling.hpp"
#include "ops/cuda/sources.hpp"

namespace pumice {
namespace {

void check_map(ConstTensorView features, const KernelMapView& map, const char* op,
               const char* name) {
  PUMICE_EXPECTS(features.device() == map.device, op, ": ", name, " is on ",
                 to_string(features.device()), " but the kernel map on ", to_string(map.device),
                 "; build it from coordinates on the same device");
  check_lists(map, op);
}

void check_input(ConstTensorView features, const KernelMapView& map, const char* op) {
  checks::matrix(features, op, "features");
  checks::extent(features, 0, map.in_rows, op, "features", "the input rows of the map");
  check_map(features, map, op, "features");
}

void check_gradient(ConstTensorView grad_output, const KernelMapView& map, const char* op) {
  checks::matrix(grad_output, op, "grad_output");
  checks::extent(grad_output, 0, map.out_rows, op, "grad_output", "the output rows of the map");
  check_map(grad_output, map, op, "grad_output");
}

/// Of equal inputs the first offset's wins, and sums are added in the order of offsets, as on the
/// CPU.
const TileMapRef& tiles_of(const KernelMapView& map) {
  return cuda::tiles_of(relation_of(map), {.tile_rows = cuda::kPoolTileRows},
                        cuda::OffsetOrder::ascending);
}

Tensor sum_pool(ConstTensorView features, const KernelMapView& map, bool average,
                const Place& place) {
  Tensor output =
      place.make({map.out_rows, features.extent(1)}, features.dtype(), features.stream());
  if (checks::on_cuda(features)) {
    jit::DeviceRunner runner = cuda::runner_for(features);
    cuda::pool(runner, average ? Pool::average : Pool::sum, tiles_of(map), features, output.view());
  } else {
    cpu::sum_pool(features, map, average, output.view());
  }
  return output;
}

/// Room for the gradient of the features.
Tensor empty_gradient(ConstTensorView grad_output, const KernelMapView& map, const Place& place) {
  return place.make({map.in_rows, grad_output.extent(1)}, grad_output.dtype(),
                    grad_output.stream());
}

}   // namespace

MaxPooled max_pool(ConstTensorView features, const KernelMapView& map,
                   const MaxPooledPlaces& places) {
  check_input(features, map, "max_pool");
  const Shape shape{map.out_rows, features.extent(1)};
  MaxPooled result{places.output.make(shape, features.dtype(), features.stream(), "places.output"),
                   places.argmax.make(shape, DType::i32, features.stream(), "places.argmax")};
  if (checks::on_cuda(features)) {
    jit::DeviceRunner runner = cuda::runner_for(features);
    cuda::pool(runner, Pool::max, tiles_of(map), features, result.output.view(),
               result.argmax.view());
  } else {
    cpu::max_pool(features, map, result.output.view(), result.argmax.view());
  }
  return result;
}

Tensor average_pool(ConstTensorView features, const KernelMapView& map, const Place& place) {
  check_input(features, map, "average_pool");
  return sum_pool(features, map, true, place);
}

Tensor sum_pool(ConstTensorView features, const KernelMapView& map, const Place& place) {
  check_input(features, map, "sum_pool");
  return sum_pool(features, map, false, place);
}

Tensor max_pool_gradient(ConstTensorView grad_output, ConstTensorView argmax,
                         const KernelMapView& map, const Place& place) {
  check_gradient(grad_output, map, "max_pool_gradient");
  PUMICE_EXPECTS(argmax.dtype() == DType::i32 && argmax.shape() == grad_output.shape(),
                 "max_pool_gradient: argmax is ", name_of(argmax.dtype()), ' ',
                 to_string(argmax.shape()), "; pass the i32 ", to_string(grad_output.shape()),
                 " that max_pool returned");
  checks::same_device(argmax, grad_output, "max_pool_gradient", "argmax", "grad_output");
  Tensor grad = empty_gradient(grad_output, map, place);
  if (checks::on_cuda(grad_output)) {
    jit::DeviceRunner runner = cuda::runner_for(grad_output);
    cuda::max_pool_gradient(runner, tiles_of(transposed(map)), grad_output, argmax, grad.view());
  } else {
    cpu::max_pool_gradient(grad_output, argmax, map, grad.view());
  }
  return grad;
}

Tensor average_pool_gradient(ConstTensorView grad_output, const KernelMapView& map,
                             const Place& place) {
  check_gradient(grad_output, map, "average_pool_gradient");
  Tensor grad = empty_gradient(grad_output, map, place);
  if (checks::on_cuda(grad_output)) {
    jit::DeviceRunner runner = cuda::runner_for(grad_output);
    cuda::average_pool_gradient(runner, tiles_of(map), tiles_of(transposed(map)), grad_output,
                                grad.view());
  } else {
    cpu::average_pool_gradient(grad_output, map, grad.view());
  }
  return grad;
}

Tensor sum_pool_gradient(ConstTensorView grad_output, const KernelMapView& map,
                         const Place& place) {
  check_gradient(grad_output, map, "sum_pool_gradient");
  return sum_pool(grad_output, transposed(map), false, place);
}

}   // namespace pumice
