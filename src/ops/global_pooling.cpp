// Checks the arguments of global pooling and broadcasting and hands them to the back end.
#include <pumice/ops/global_pooling.hpp>

#include <array>

#include <pumice/ops/elementwise.hpp>

#include "ops/checks.hpp"
#include "ops/cpu/global_pooling.hpp"

namespace pumice {
namespace {

void check_rows(ConstTensorView features, const CoordinateSet& set, const char* op,
                const char* name) {
  checks::features(features, op, name);
  checks::extent(features, 0, set.size(), op, name, "the rows of the coordinate set");
}

void check_items(ConstTensorView items, const CoordinateSet& set, const char* op,
                 const char* name) {
  checks::features(items, op, name);
  checks::extent(items, 0, set.batch_size(), op, name, "the batch size of the coordinate set");
}

void check_join(ConstTensorView features, ConstTensorView items, const CoordinateSet& set,
                const char* op, bool equal_channels) {
  check_rows(features, set, op, "features");
  check_items(items, set, op, "items");
  checks::same_dtype(items, features.dtype(), op, "items", "features");
  if (equal_channels) {
    checks::extent(items, 1, features.extent(1), op, "items", "the channels of the features");
  }
}

Tensor pool(ConstTensorView features, const CoordinateSet& set, bool average, const char* op) {
  check_rows(features, set, op, "features");
  Tensor output({set.batch_size(), features.extent(1)}, features.dtype());
  cpu::global_sum_pool(features, set, average, output.view());
  return output;
}

Tensor spread(ConstTensorView items, const CoordinateSet& set, bool average, const char* op,
              const char* name) {
  check_items(items, set, op, name);
  Tensor output({set.size(), items.extent(1)}, items.dtype());
  cpu::broadcast(items, set, average, output.view());
  return output;
}

}   // namespace

GlobalMaxPooled global_max_pool(ConstTensorView features, const CoordinateSet& set) {
  check_rows(features, set, "global_max_pool", "features");
  const Shape shape{set.batch_size(), features.extent(1)};
  GlobalMaxPooled result{Tensor(shape, features.dtype()), Tensor(shape, DType::i32)};
  cpu::global_max_pool(features, set, result.output.view(), result.argmax.view());
  return result;
}

Tensor global_average_pool(ConstTensorView features, const CoordinateSet& set) {
  return pool(features, set, true, "global_average_pool");
}

Tensor global_sum_pool(ConstTensorView features, const CoordinateSet& set) {
  return pool(features, set, false, "global_sum_pool");
}

Tensor global_max_pool_gradient(ConstTensorView grad_output, ConstTensorView argmax,
                                const CoordinateSet& set) {
  check_items(grad_output, set, "global_max_pool_gradient", "grad_output");
  PUMICE_EXPECTS(argmax.dtype() == DType::i32 && argmax.shape() == grad_output.shape(),
                 "global_max_pool_gradient: argmax is ", name_of(argmax.dtype()), ' ',
                 to_string(argmax.shape()), "; pass the i32 ", to_string(grad_output.shape()),
                 " that global_max_pool returned");
  Tensor grad = Tensor::zeros({set.size(), grad_output.extent(1)}, grad_output.dtype());
  cpu::global_max_pool_gradient(grad_output, argmax, grad.view());
  return grad;
}

Tensor global_average_pool_gradient(ConstTensorView grad_output, const CoordinateSet& set) {
  return spread(grad_output, set, true, "global_average_pool_gradient", "grad_output");
}

Tensor global_sum_pool_gradient(ConstTensorView grad_output, const CoordinateSet& set) {
  return spread(grad_output, set, false, "global_sum_pool_gradient", "grad_output");
}

Tensor broadcast(ConstTensorView items, const CoordinateSet& set) {
  return spread(items, set, false, "broadcast", "items");
}

Tensor broadcast_add(ConstTensorView features, ConstTensorView items, const CoordinateSet& set) {
  check_join(features, items, set, "broadcast_add", true);
  Tensor output(features.shape(), features.dtype());
  cpu::broadcast_join(features, items, set, cpu::Join::add, output.view());
  return output;
}

Tensor broadcast_multiply(ConstTensorView features, ConstTensorView items,
                          const CoordinateSet& set) {
  check_join(features, items, set, "broadcast_multiply", true);
  Tensor output(features.shape(), features.dtype());
  cpu::broadcast_join(features, items, set, cpu::Join::multiply, output.view());
  return output;
}

Tensor broadcast_concatenate(ConstTensorView features, ConstTensorView items,
                             const CoordinateSet& set) {
  check_join(features, items, set, "broadcast_concatenate", false);
  Tensor output({set.size(), features.extent(1) + items.extent(1)}, features.dtype());
  cpu::broadcast_join(features, items, set, cpu::Join::concatenate, output.view());
  return output;
}

BroadcastGradients broadcast_add_gradient(ConstTensorView grad_output, const CoordinateSet& set) {
  Tensor items = pool(grad_output, set, false, "broadcast_add_gradient");
  return {scale(grad_output, 1.0), std::move(items)};
}

BroadcastGradients broadcast_multiply_gradient(ConstTensorView features, ConstTensorView items,
                                               ConstTensorView grad_output,
                                               const CoordinateSet& set) {
  const char* op = "broadcast_multiply_gradient";
  check_join(features, items, set, op, true);
  checks::same_shape(grad_output, features, op, "grad_output", "features");
  Tensor grad_items(items.shape(), items.dtype());
  cpu::global_product_sum(features, grad_output, set, grad_items.view());
  return {broadcast_multiply(grad_output, items, set), std::move(grad_items)};
}

BroadcastGradients broadcast_concatenate_gradient(ConstTensorView grad_output,
                                                  std::int64_t channels, const CoordinateSet& set) {
  const char* op = "broadcast_concatenate_gradient";
  check_rows(grad_output, set, op, "grad_output");
  PUMICE_EXPECTS(channels >= 0 && channels <= grad_output.extent(1), op, ": channels = ", channels,
                 "; grad_output has ", grad_output.extent(1), " columns in all");
  const std::array<std::int64_t, 2> widths{channels, grad_output.extent(1) - channels};
  std::vector<Tensor> parts = split(grad_output, widths);
  return {std::move(parts[0]), global_sum_pool(parts[1], set)};
}

}   // namespace pumice
