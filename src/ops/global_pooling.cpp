// Checks the arguments of global pooling and broadcasting and hands them to the back end.
#include <pumice/ops/global_pooling.hpp>

#include <array>

#include <pumice/ops/elementwise.hpp>

#include "ops/checks.hpp"
#include "ops/cpu/global_pooling.hpp"
#include "ops/cuda/columns.hpp"
#include "ops/cuda/items.hpp"
#include "ops/cuda/sources.hpp"

namespace pumice {
namespace {

void check_rows(ConstTensorView features, const CoordinateSet& set, const char* op,
                const char* name) {
  checks::matrix(features, op, name);
  checks::same_device(features, set, op, name);
  checks::extent(features, 0, set.rows().capacity(), op, name, "the rows of the coordinate set");
}

void check_items(ConstTensorView items, const CoordinateSet& set, const char* op,
                 const char* name) {
  checks::matrix(items, op, name);
  checks::same_device(items, set, op, name);
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

Tensor pool(ConstTensorView features, const CoordinateSet& set, bool average, const char* op,
            const Place& place) {
  check_rows(features, set, op, "features");
  Tensor output =
      place.make({set.batch_size(), features.extent(1)}, features.dtype(), features.stream());
  if (checks::on_cuda(features)) {
    jit::DeviceRunner runner = cuda::runner_for(features);
    const cuda::SetItems items(runner, set);
    cuda::sum_items(runner, items.rows(), features, average, output.view());
  } else {
    cpu::global_sum_pool(features, set, average, output.view());
  }
  return output;
}

Tensor spread(ConstTensorView items, const CoordinateSet& set, bool average, const char* op,
              const char* name, const Place& place) {
  check_items(items, set, op, name);
  Tensor output =
      place.make({set.rows().capacity(), items.extent(1)}, items.dtype(), items.stream());
  if (checks::on_cuda(items)) {
    jit::DeviceRunner runner = cuda::runner_for(items);
    const cuda::SetItems rows(runner, set);
    cuda::spread_items(runner, rows.rows(), items, {}, average ? Spread::average : Spread::copy,
                       output.view());
  } else {
    cpu::broadcast(items, set, average, output.view());
  }
  return output;
}

Tensor join(ConstTensorView features, ConstTensorView items, const CoordinateSet& set,
            cpu::Join kind, const char* op, const Place& place) {
  check_join(features, items, set, op, true);
  Tensor output = place.make(features.shape(), features.dtype(), features.stream());
  if (checks::on_cuda(features)) {
    jit::DeviceRunner runner = cuda::runner_for(features);
    const cuda::SetItems rows(runner, set);
    cuda::spread_items(runner, rows.rows(), items, features,
                       kind == cpu::Join::add ? Spread::add : Spread::multiply, output.view());
  } else {
    cpu::broadcast_join(features, items, set, kind, output.view());
  }
  return output;
}

}   // namespace

GlobalMaxPooled global_max_pool(ConstTensorView features, const CoordinateSet& set,
                                const GlobalMaxPooledPlaces& places) {
  check_rows(features, set, "global_max_pool", "features");
  const Shape shape{set.batch_size(), features.extent(1)};
  GlobalMaxPooled result{
      places.output.make(shape, features.dtype(), features.stream(), "places.output"),
      places.argmax.make(shape, DType::i32, features.stream(), "places.argmax")};
  if (checks::on_cuda(features)) {
    jit::DeviceRunner runner = cuda::runner_for(features);
    const cuda::SetItems items(runner, set);
    cuda::largest_of_items(runner, items.rows(), features, result.output.view(),
                           result.argmax.view());
  } else {
    cpu::global_max_pool(features, set, result.output.view(), result.argmax.view());
  }
  return result;
}

Tensor global_average_pool(ConstTensorView features, const CoordinateSet& set, const Place& place) {
  return pool(features, set, true, "global_average_pool", place);
}

Tensor global_sum_pool(ConstTensorView features, const CoordinateSet& set, const Place& place) {
  return pool(features, set, false, "global_sum_pool", place);
}

Tensor global_max_pool_gradient(ConstTensorView grad_output, ConstTensorView argmax,
                                const CoordinateSet& set, const Place& place) {
  check_items(grad_output, set, "global_max_pool_gradient", "grad_output");
  PUMICE_EXPECTS(argmax.dtype() == DType::i32 && argmax.shape() == grad_output.shape(),
                 "global_max_pool_gradient: argmax is ", name_of(argmax.dtype()), ' ',
                 to_string(argmax.shape()), "; pass the i32 ", to_string(grad_output.shape()),
                 " that global_max_pool returned");
  checks::same_device(argmax, grad_output, "global_max_pool_gradient", "argmax", "grad_output");
  Tensor grad = place.make_zeros({set.rows().capacity(), grad_output.extent(1)},
                                 grad_output.dtype(), grad_output.stream());
  if (checks::on_cuda(grad_output)) {
    jit::DeviceRunner runner = cuda::runner_for(grad_output);
    cuda::scatter_chosen(runner, grad_output, argmax, grad.view());
  } else {
    cpu::global_max_pool_gradient(grad_output, argmax, grad.view());
  }
  return grad;
}

Tensor global_average_pool_gradient(ConstTensorView grad_output, const CoordinateSet& set,
                                    const Place& place) {
  return spread(grad_output, set, true, "global_average_pool_gradient", "grad_output", place);
}

Tensor global_sum_pool_gradient(ConstTensorView grad_output, const CoordinateSet& set,
                                const Place& place) {
  return spread(grad_output, set, false, "global_sum_pool_gradient", "grad_output", place);
}

Tensor broadcast(ConstTensorView items, const CoordinateSet& set, const Place& place) {
  return spread(items, set, false, "broadcast", "items", place);
}

Tensor broadcast_add(ConstTensorView features, ConstTensorView items, const CoordinateSet& set,
                     const Place& place) {
  return join(features, items, set, cpu::Join::add, "broadcast_add", place);
}

Tensor broadcast_multiply(ConstTensorView features, ConstTensorView items, const CoordinateSet& set,
                          const Place& place) {
  return join(features, items, set, cpu::Join::multiply, "broadcast_multiply", place);
}

Tensor broadcast_concatenate(ConstTensorView features, ConstTensorView items,
                             const CoordinateSet& set, const Place& place) {
  check_join(features, items, set, "broadcast_concatenate", false);
  if (checks::on_cuda(features)) return concatenate(features, broadcast(items, set), place);
  Tensor output = place.make({set.size(), features.extent(1) + items.extent(1)}, features.dtype(),
                             features.stream());
  cpu::broadcast_join(features, items, set, cpu::Join::concatenate, output.view());
  return output;
}

BroadcastGradients broadcast_add_gradient(ConstTensorView grad_output, const CoordinateSet& set,
                                          const BroadcastGradientPlaces& places) {
  Tensor items = pool(grad_output, set, false, "broadcast_add_gradient", places.items);
  return {scale(grad_output, 1.0, places.features), std::move(items)};
}

BroadcastGradients broadcast_multiply_gradient(ConstTensorView features, ConstTensorView items,
                                               ConstTensorView grad_output,
                                               const CoordinateSet& set,
                                               const BroadcastGradientPlaces& places) {
  const char* op = "broadcast_multiply_gradient";
  check_join(features, items, set, op, true);
  checks::same_shape(grad_output, features, op, "grad_output", "features");
  checks::same_device(grad_output, features, op, "grad_output", "features");
  Tensor grad_items =
      places.items.make(items.shape(), items.dtype(), items.stream(), "places.items");
  if (checks::on_cuda(features)) {
    jit::DeviceRunner runner = cuda::runner_for(features);
    const cuda::SetItems rows(runner, set);
    cuda::sum_products(runner, rows.rows(), features, grad_output, grad_items.view());
  } else {
    cpu::global_product_sum(features, grad_output, set, grad_items.view());
  }
  return {broadcast_multiply(grad_output, items, set, places.features), std::move(grad_items)};
}

BroadcastGradients broadcast_concatenate_gradient(ConstTensorView grad_output,
                                                  std::int64_t channels, const CoordinateSet& set,
                                                  const BroadcastGradientPlaces& places) {
  const char* op = "broadcast_concatenate_gradient";
  check_rows(grad_output, set, op, "grad_output");
  PUMICE_EXPECTS(channels >= 0 && channels <= grad_output.extent(1), op, ": channels = ", channels,
                 "; grad_output has ", grad_output.extent(1), " columns in all");
  const std::array<std::int64_t, 2> widths{channels, grad_output.extent(1) - channels};
  const std::array<Place, 2> parts_go{places.features, {}};
  std::vector<Tensor> parts = split(grad_output, widths, parts_go);
  return {std::move(parts[0]), global_sum_pool(parts[1], set, places.items)};
}

}   // namespace pumice
