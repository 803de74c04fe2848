// Shares of rows, memory for their results, launches.
#include "ops/cuda/columns.hpp"

#include <algorithm>

#include "core/cuda/status.hpp"
#include "ops/cuda/rows.hpp"
#include "ops/cuda/sources.hpp"
#include "plan/cuda_architecture.hpp"

namespace pumice::cuda {
namespace {

/// A thread has this many rows at least: with fewer, adding shares up costs more than rows do.
constexpr std::int64_t kRowsPerThread = 4;

int column_tiles(const ColumnShape& shape) {   // blocks along y
  return (shape.channels + kColumnTile - 1) / kColumnTile;
}

ColumnShape shape_of(const jit::KernelRunner& runner, const RowItems& rows,
                     const ConstTensorView& features) {
  ColumnShape shape{.rows = rows,
                    .channels = static_cast<std::int32_t>(features.extent(1)),
                    .type = element_type(features.dtype(), "norms and sums", "features")};
  const int columns = shape.channels % kColumnVector == 0 ? kColumnVector : 1;
  const std::int64_t chunks = std::clamp(shape.channels, 1, kColumnTile) / columns;
  const std::int64_t lanes = kColumnThreads / std::max<std::int64_t>(chunks, 1);
  const std::int64_t least = kRowsPerThread * lanes;
  // One block a multiprocessor, of which all registers allow no more; and every block of a norm
  // adds up all shares. One item may have all rows.
  const std::int64_t most =
      multiprocessors_of(runner.stream()) /
      std::max<std::int64_t>(1, std::int64_t{rows.items} * column_tiles(shape));
  shape.share_rows = static_cast<std::int32_t>(least);
  shape.shares = static_cast<std::int32_t>(
      std::clamp<std::int64_t>((rows.rows.capacity + least - 1) / least, 1,
                               std::clamp<std::int64_t>(most, 1, kSharesAtOnce)));
  if (rows.rows.count == nullptr && rows.begin == nullptr)
    shape.step = (rows.rows.capacity + shape.shares - 1) / shape.shares;
  return shape;
}

jit::LaunchShape launch_over(const ColumnShape& shape) {
  return {.blocks = std::int64_t{shape.rows.items} * shape.shares,
          .blocks_y = column_tiles(shape),
          .threads = kColumnThreads};
}

jit::LaunchShape launch_to_finish(const ColumnShape& shape) {
  return {.blocks = (shape.channels + kFinishChannels - 1) / kFinishChannels,
          .threads = kFinishThreads};
}

Buffer<float> partial_results(jit::KernelRunner& runner, const ColumnShape& shape) {
  return runner.make<float>(std::int64_t{shape.rows.items} * shape.shares * 2 * shape.channels);
}

const float* floats(const ConstTensorView& tensor) {
  return tensor.defined() ? tensor.data<float>() : nullptr;
}

ElementType parameter_type(const ConstTensorView& parameter) {
  return parameter.defined() ? element_type(parameter.dtype(), "norms", "a parameter")
                             : ElementType::f32;
}

void sum_shares(jit::KernelRunner& runner, const ColumnSumArguments& arguments) {
  runner.run(ops_kernel("column_sums"), launch_over(arguments.shape), arguments);
}

void finish(jit::KernelRunner& runner, const FinishSumArguments& arguments) {
  runner.run(ops_kernel("finish_sums"), launch_to_finish(arguments.shape), arguments);
}

LayerNormArguments layer_arguments(const RowCountRef& rows, const ConstTensorView& features,
                                   const TensorView& out) {
  return {.rows = rows,
          .in = features.raw(),
          .out = out.raw(),
          .channels = static_cast<std::int32_t>(features.extent(1)),
          .type = element_type(features.dtype(), "layer_norm", "features")};
}

void run_layer_norm(jit::KernelRunner& runner, const LayerNormArguments& arguments) {
  constexpr std::int64_t kRows = kColumnThreads / 32;
  runner.run(ops_kernel("layer_norm_rows"),
             {.blocks = (arguments.rows.capacity + kRows - 1) / kRows, .threads = kColumnThreads},
             arguments);
}

}   // namespace

RowItems all_rows(const ConstTensorView& features) {
  return {.rows = {nullptr, features.rows()}};
}

void invert_deviations(jit::KernelRunner& runner, ConstTensorView variance, double epsilon,
                       TensorView inverse_deviation) {
  const auto channels = static_cast<std::int32_t>(variance.elements());
  runner.run(
      ops_kernel("invert_deviations"),
      {.blocks = (channels + kColumnThreads - 1) / kColumnThreads, .threads = kColumnThreads},
      DeviationArguments{.variance = variance.data<float>(),
                         .out = inverse_deviation.data<float>(),
                         .epsilon = epsilon,
                         .channels = channels});
}

void normalize(jit::KernelRunner& runner, const RowItems& rows, ConstTensorView features,
               ConstTensorView mean, ConstTensorView inverse_deviation, ConstTensorView weight,
               ConstTensorView bias, TensorView output) {
  if (features.elements() == 0) return;
  const ColumnShape shape = shape_of(runner, rows, features);
  runner.run(
      ops_kernel("normalize_rows"), launch_over(shape),
      NormalizeArguments{.shape = shape,
                         .in = features.raw(),
                         .out = output.raw(),
                         .mean = mean.data<float>(),
                         .inverse_deviation = inverse_deviation.data<float>(),
                         .weight = weight.raw(),
                         .bias = bias.raw(),
                         .parameter_type = parameter_type(weight.defined() ? weight : bias)});
}

void normalize_by_own(jit::KernelRunner& runner, const RowItems& rows, ConstTensorView features,
                      const OwnStatistics& own, ConstTensorView weight, ConstTensorView bias,
                      TensorView output, const BehindNorm& behind) {
  if (features.extent(1) == 0) return;
  const ColumnShape shape = shape_of(runner, rows, features);
  auto partial = partial_results(runner, shape);
  runner.run(ops_kernel("column_moments"), launch_over(shape),
             MomentArguments{.shape = shape, .in = features.raw(), .partial = partial.data()});
  const Running& running = own.running;
  StatusRecord* const status = own.reports_single_row ? runner.status() : nullptr;
  runner.run(ops_kernel("normalize_rows"), launch_over(shape),
             NormalizeArguments{
                 .shape = shape,
                 .in = features.raw(),
                 .out = output.raw(),
                 .own = {.partial = partial.data(),
                         .mean = own.mean.data<float>(),
                         .inverse_deviation = own.inverse_deviation.data<float>(),
                         .running_mean = running.mean.raw(),
                         .running_variance = running.variance.raw(),
                         .batches = running.batches.defined() ? running.batches.data<std::int64_t>()
                                                              : nullptr,
                         .epsilon = own.epsilon,
                         .momentum = running.momentum,
                         .empty = own.empty,
                         .running_type = parameter_type(running.mean),
                         .status = status,
                         .site = status != nullptr ? status_site("batch_norm_training") : 0},
                 .weight = weight.raw(),
                 .bias = bias.raw(),
                 .residual = behind.residual.raw(),
                 .relu = behind.relu,
                 .parameter_type = parameter_type(weight.defined() ? weight : bias)});
}

void normalize_gradient(jit::KernelRunner& runner, const RowItems& rows, ConstTensorView features,
                        ConstTensorView grad_output, ConstTensorView mean,
                        ConstTensorView inverse_deviation, ConstTensorView weight,
                        bool constant_statistics, const NormGradientViews& gradients,
                        ConstTensorView relu) {
  if (features.extent(1) == 0) return;
  const ColumnShape shape = shape_of(runner, rows, features);
  auto partial = partial_results(runner, shape);
  sum_shares(runner, {.shape = shape,
                      .grad = grad_output.raw(),
                      .in = features.raw(),
                      .relu = relu.raw(),
                      .mean = mean.data<float>(),
                      .partial = partial.data(),
                      .term = SumTerm::centered});
  const bool one_item = rows.items == 1;
  runner.run(ops_kernel("normalize_gradient"), launch_over(shape),
             FeatureGradientArguments{.shape = shape,
                                      .in = features.raw(),
                                      .grad = grad_output.raw(),
                                      .relu = relu.raw(),
                                      .out = gradients.features.raw(),
                                      .passed = gradients.residual.raw(),
                                      .mean = mean.data<float>(),
                                      .inverse_deviation = inverse_deviation.data<float>(),
                                      .weight = weight.raw(),
                                      .partial = partial.data(),
                                      .constant = constant_statistics,
                                      .grad_weight = one_item ? gradients.weight.raw() : nullptr,
                                      .grad_bias = one_item ? gradients.bias.raw() : nullptr,
                                      .parameter_type = parameter_type(gradients.weight)});
  if (one_item) return;
  runner.run(ops_kernel("finish_norm_gradient"), launch_to_finish(shape),
             NormGradientArguments{.shape = shape,
                                   .partial = partial.data(),
                                   .inverse_deviation = inverse_deviation.data<float>(),
                                   .grad_weight = gradients.weight.data<float>(),
                                   .grad_bias = gradients.bias.data<float>()});
}

void layer_norm(jit::KernelRunner& runner, const RowCountRef& rows, ConstTensorView features,
                ConstTensorView weight, ConstTensorView bias, double epsilon, TensorView output,
                TensorView mean, TensorView inverse_deviation) {
  LayerNormArguments arguments = layer_arguments(rows, features, output);
  arguments.new_mean = mean.data<float>();
  arguments.new_inverse_deviation = inverse_deviation.data<float>();
  arguments.weight = floats(weight);
  arguments.bias = floats(bias);
  arguments.epsilon = epsilon;
  run_layer_norm(runner, arguments);
}

void layer_norm_gradient(jit::KernelRunner& runner, const RowCountRef& rows,
                         ConstTensorView features, ConstTensorView grad_output,
                         ConstTensorView weight, ConstTensorView mean,
                         ConstTensorView inverse_deviation, const NormGradientViews& gradients) {
  if (features.extent(1) == 0) return;
  LayerNormArguments arguments = layer_arguments(rows, features, gradients.features);
  arguments.grad = grad_output.raw();
  arguments.mean = mean.data<float>();
  arguments.inverse_deviation = inverse_deviation.data<float>();
  arguments.weight = floats(weight);
  run_layer_norm(runner, arguments);
  const ColumnShape shape = shape_of(runner, {.rows = rows}, features);
  auto partial = partial_results(runner, shape);
  sum_shares(runner, {.shape = shape,
                      .grad = grad_output.raw(),
                      .in = features.raw(),
                      .mean = mean.data<float>(),
                      .inverse_deviation = inverse_deviation.data<float>(),
                      .partial = partial.data(),
                      .term = SumTerm::normalized});
  runner.run(ops_kernel("finish_norm_gradient"), launch_to_finish(shape),
             NormGradientArguments{.shape = shape,
                                   .partial = partial.data(),
                                   .grad_weight = gradients.weight.data<float>(),
                                   .grad_bias = gradients.bias.data<float>()});
}

void sum_items(jit::KernelRunner& runner, const RowItems& rows, ConstTensorView features,
               bool average, TensorView output) {
  if (output.elements() == 0) return;
  const ColumnShape shape = shape_of(runner, rows, features);
  auto partial = partial_results(runner, shape);
  sum_shares(runner, {.shape = shape, .grad = features.raw(), .partial = partial.data()});
  finish(runner, {.shape = shape,
                  .partial = partial.data(),
                  .out = output.raw(),
                  .average = average,
                  .out_type = element_type(output.dtype(), "sums over rows", "the result")});
}

void sum_products(jit::KernelRunner& runner, const RowItems& rows, ConstTensorView left,
                  ConstTensorView right, TensorView output) {
  if (output.elements() == 0) return;
  const ColumnShape shape = shape_of(runner, rows, left);
  auto partial = partial_results(runner, shape);
  sum_shares(runner, {.shape = shape,
                      .grad = left.raw(),
                      .in = right.raw(),
                      .partial = partial.data(),
                      .term = SumTerm::product});
  finish(runner, {.shape = shape,
                  .partial = partial.data(),
                  .out = output.raw(),
                  .second = true,
                  .out_type = element_type(output.dtype(), "sums over rows", "the result")});
}

void largest_of_items(jit::KernelRunner& runner, const RowItems& rows, ConstTensorView features,
                      TensorView output, TensorView argmax) {
  if (output.elements() == 0) return;
  const ColumnShape shape = shape_of(runner, rows, features);
  auto value = partial_results(runner, shape);
  auto row = runner.make<std::int32_t>(value.size());
  runner.run(ops_kernel("column_maxima"), launch_over(shape),
             MaximumArguments{
                 .shape = shape, .in = features.raw(), .value = value.data(), .row = row.data()});
  runner.run(ops_kernel("finish_maxima"),
             {.blocks = (output.elements() + kColumnThreads - 1) / kColumnThreads,
              .threads = kColumnThreads},
             FinishMaximumArguments{.shape = shape,
                                    .value = value.data(),
                                    .row = row.data(),
                                    .out = output.raw(),
                                    .argmax = argmax.data<std::int32_t>()});
}

void scatter_chosen(jit::KernelRunner& runner, ConstTensorView grad_output, ConstTensorView argmax,
                    TensorView grad_features) {
  const RowList rows =
      list_of(runner, argmax, grad_features.rows(), "global_max_pool_gradient: argmax");
  runner.run(ops_kernel("scatter_chosen"),
             {.blocks = (grad_output.elements() + kColumnThreads - 1) / kColumnThreads,
              .threads = kColumnThreads},
             ChosenArguments{.grad = grad_output.raw(),
                             .argmax = rows,
                             .out = grad_features.raw(),
                             .channels = static_cast<std::int32_t>(grad_output.extent(1)),
                             .type = element_type(grad_output.dtype(), "max pool", "grad_output")});
}

void spread_items(jit::KernelRunner& runner, const RowItems& rows, ConstTensorView items,
                  ConstTensorView features, Spread spread, TensorView output) {
  if (output.elements() == 0) return;
  const ColumnShape shape = shape_of(runner, rows, output);
  runner.run(ops_kernel("spread_items"), launch_over(shape),
             SpreadArguments{.shape = shape,
                             .items = items.raw(),
                             .in = features.raw(),
                             .out = output.raw(),
                             .spread = spread});
}

}   // namespace pumice::cuda
