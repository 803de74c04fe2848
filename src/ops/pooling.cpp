// Checks the arguments of pooling, makes its results and hands both to the back end.
#include <pumice/ops/pooling.hpp>

#include "ops/checks.hpp"
#include "ops/cpu/pooling.hpp"

namespace pumice {
namespace {

void check_input(ConstTensorView features, const KernelMapView& map, const char* op) {
  checks::features(features, op, "features");
  checks::extent(features, 0, map.in_rows, op, "features", "the input rows of the map");
}

void check_gradient(ConstTensorView grad_output, const KernelMapView& map, const char* op) {
  checks::features(grad_output, op, "grad_output");
  checks::extent(grad_output, 0, map.out_rows, op, "grad_output", "the output rows of the map");
}

}   // namespace

MaxPooled max_pool(ConstTensorView features, const KernelMapView& map) {
  check_input(features, map, "max_pool");
  const Shape shape{map.out_rows, features.extent(1)};
  MaxPooled result{Tensor(shape, features.dtype()), Tensor(shape, DType::i32)};
  cpu::max_pool(features, map, result.output.view(), result.argmax.view());
  return result;
}

Tensor average_pool(ConstTensorView features, const KernelMapView& map) {
  check_input(features, map, "average_pool");
  Tensor output({map.out_rows, features.extent(1)}, features.dtype());
  cpu::sum_pool(features, map, true, output.view());
  return output;
}

Tensor sum_pool(ConstTensorView features, const KernelMapView& map) {
  check_input(features, map, "sum_pool");
  Tensor output({map.out_rows, features.extent(1)}, features.dtype());
  cpu::sum_pool(features, map, false, output.view());
  return output;
}

Tensor max_pool_gradient(ConstTensorView grad_output, ConstTensorView argmax,
                         const KernelMapView& map) {
  check_gradient(grad_output, map, "max_pool_gradient");
  PUMICE_EXPECTS(argmax.dtype() == DType::i32 && argmax.shape() == grad_output.shape(),
                 "max_pool_gradient: argmax is ", name_of(argmax.dtype()), ' ',
                 to_string(argmax.shape()), "; pass the i32 ", to_string(grad_output.shape()),
                 " that max_pool returned");
  Tensor grad({map.in_rows, grad_output.extent(1)}, grad_output.dtype());
  cpu::max_pool_gradient(grad_output, argmax, map, grad.view());
  return grad;
}

Tensor average_pool_gradient(ConstTensorView grad_output, const KernelMapView& map) {
  check_gradient(grad_output, map, "average_pool_gradient");
  Tensor grad({map.in_rows, grad_output.extent(1)}, grad_output.dtype());
  cpu::average_pool_gradient(grad_output, map, grad.view());
  return grad;
}

Tensor sum_pool_gradient(ConstTensorView grad_output, const KernelMapView& map) {
  check_gradient(grad_output, map, "sum_pool_gradient");
  Tensor grad({map.in_rows, grad_output.extent(1)}, grad_output.dtype());
  cpu::sum_pool(grad_output, transposed(map), false, grad.view());
  return grad;
}

}   // namespace pumice
