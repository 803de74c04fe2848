// Checks the arguments of normalisation, turns moments into statistics and calls the back end.
#include <pumice/ops/normalization.hpp>

#include <cmath>

#include <pumice/core/copy.hpp>
#include <pumice/core/parallel.hpp>

#include "ops/checks.hpp"
#include "ops/cpu/normalization.hpp"
#include "ops/cuda/columns.hpp"
#include "ops/cuda/elementwise.hpp"
#include "ops/cuda/items.hpp"
#include "ops/cuda/sources.hpp"
#include "ops/rows_in_use.hpp"

namespace pumice {
namespace {

void check_input(ConstTensorView features, ConstTensorView weight, ConstTensorView bias,
                 double epsilon, const char* op) {
  checks::matrix(features, op, "features");
  checks::parameter(weight, features.extent(1), features.dtype(), op, "weight");
  checks::parameter(bias, features.extent(1), features.dtype(), op, "bias");
  checks::same_device(weight, features, op, "weight", "features");
  checks::same_device(bias, features, op, "bias", "features");
  checks::epsilon(epsilon, op);
}

/// The same for batch norm in training, whose parameters may be of the features' type.
void check_batch_input(ConstTensorView features, ConstTensorView weight, ConstTensorView bias,
                       double epsilon, const char* op) {
  checks::matrix(features, op, "features");
  checks::norm_parameters(weight, bias, features.extent(1), features.dtype(), op, "weight", "bias");
  checks::same_device(weight, features, op, "weight", "features");
  checks::same_device(bias, features, op, "bias", "features");
  checks::epsilon(epsilon, op);
}

void check_statistic(ConstTensorView tensor, const Shape& shape, DType storage, const char* op,
                     const char* name) {
  PUMICE_EXPECTS(tensor.shape() == shape && tensor.dtype() == checks::compute_dtype(storage), op,
                 ": ", name, " is ", name_of(tensor.dtype()), ' ', to_string(tensor.shape()),
                 "; for these features it must be ", name_of(checks::compute_dtype(storage)), ' ',
                 to_string(shape));
}

void check_batches(ConstTensorView batches, ConstTensorView features, const char* op) {
  if (!batches.defined()) return;
  PUMICE_EXPECTS(batches.dtype() == DType::i64 && batches.elements() == 1, op, ": batches is ",
                 name_of(batches.dtype()), ' ', to_string(batches.shape()),
                 "; a number of batches is one i64");
  checks::same_device(batches, features, op, "batches", "features");
}

void check_statistics(ConstTensorView mean, ConstTensorView other, ConstTensorView features,
                      const Shape& shape, const char* op, const char* other_name) {
  check_statistic(mean, shape, features.dtype(), op, "mean");
  check_statistic(other, shape, features.dtype(), op, other_name);
  checks::same_device(mean, features, op, "mean", "features");
  checks::same_device(other, features, op, other_name, "features");
}

void check_set(const CoordinateSet& set, ConstTensorView features, const char* op) {
  checks::extent(features, 0, set.rows().capacity(), op, "features",
                 "the rows of the coordinate set");
  checks::same_device(features, set, op, "features");
}

void check_gradient(ConstTensorView features, ConstTensorView grad_output, ConstTensorView mean,
                    ConstTensorView inverse_deviation, const Shape& statistics, const char* op) {
  checks::same_shape(grad_output, features, op, "grad_output", "features");
  checks::same_device(grad_output, features, op, "grad_output", "features");
  check_statistics(mean, inverse_deviation, features, statistics, op, "inverse_deviation");
}

template <class C> void store(const std::vector<double>& values, TensorView to) {
  for (std::size_t i = 0; i < values.size(); ++i)
    to.data<C>()[i] = static_cast<C>(values[i]);
}

/// Stores `values` in the compute type.
void store(const std::vector<double>& values, TensorView to) {
  if (to.dtype() == DType::f64)
    store<double>(values, to);
  else
    store<float>(values, to);
}

std::vector<double> inverse_deviations(std::vector<double> variance, double epsilon) {
  for (double& value : variance)
    value = 1.0 / std::sqrt(value + epsilon);
  return variance;
}

void move_towards(TensorView running, const std::vector<double>& target, double momentum,
                  double correction) {
  if (!running.defined()) return;
  dispatch_floating(running.dtype(), "running statistics", [&]<class T>(T) {
    for (std::size_t c = 0; c < target.size(); ++c) {
      T& value = running.data<T>()[c];
      value = narrow<T>(static_cast<compute_t<T>>((1.0 - momentum) * double{widen(value)} +
                                                  momentum * correction * target[c]));
    }
  });
}

/// A vector of parameters on the host in the compute type, in `room` where it is of another one.
ConstTensorView widened(ConstTensorView parameter, DType compute, Tensor& room) {
  if (!parameter.defined() || parameter.dtype() == compute) return parameter;
  room = Tensor(parameter.shape(), parameter.dtype());
  copy_async(room.view(), parameter, room.stream());
  room = room.to(compute);
  return room;
}

/// Room for the gradients of `features` and of parameters of a type.
NormGradients empty_gradients(ConstTensorView features, DType of_parameters,
                              const NormGradientPlaces& places) {
  const StreamView stream = features.stream();
  const Shape channels{features.extent(1)};
  return {places.features.make(features.shape(), features.dtype(), stream, "places.features"),
          places.weight.make(channels, of_parameters, stream, "places.weight"),
          places.bias.make(channels, of_parameters, stream, "places.bias")};
}

cuda::NormGradientViews views_of(NormGradients& gradients) {
  return {gradients.features.view(), gradients.weight.view(), gradients.bias.view(),
          gradients.residual.view()};
}
cuda::NormGradientViews views_of(NormGradients& gradients, const RowsInUse& used) {
  cuda::NormGradientViews views = views_of(gradients);
  views.features = used.of(views.features);
  views.residual = used.of(views.residual);
  return views;
}

constexpr std::int64_t kGrain = 1 << 14;   // elements a chunk

/// relu(output + residual), where it lies.
void apply_on_host(const AfterNorm& after, TensorView output) {
  if (!after.relu && !after.residual.defined()) return;
  dispatch_floating(output.dtype(), "batch_norm_training", [&]<class T>(T) {
    const T* const residual = after.residual.defined() ? after.residual.data<T>() : nullptr;
    T* const out = output.data<T>();
    parallel_for(output.elements(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        auto value = widen(out[i]);
        if (residual != nullptr) value += widen(residual[i]);
        out[i] = narrow<T>(after.relu && value < 0 ? decltype(value){0} : value);
      }
    });
  });
}

/// The gradient behind a ReLU of this output.
void pass_relu_on_host(ConstTensorView grad_output, ConstTensorView output, TensorView passed) {
  dispatch_floating(output.dtype(), "batch_norm_training_gradient", [&]<class T>(T) {
    const T* const grad = grad_output.data<T>();
    const T* const out = output.data<T>();
    T* const to = passed.data<T>();
    parallel_for(output.elements(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        to[i] = widen(out[i]) > 0 ? grad[i] : narrow<T>(decltype(widen(out[i])){0});
    });
  });
}

/// Room for what a norm of `features` returns.
Normalized empty_result(ConstTensorView features, const Shape& statistics,
                        const NormalizedPlaces& places) {
  const DType compute = checks::compute_dtype(features.dtype());
  const StreamView stream = features.stream();
  return {places.output.make(features.shape(), features.dtype(), stream, "places.output"),
          places.mean.make(statistics, compute, stream, "places.mean"),
          places.inverse_deviation.make(statistics, compute, stream, "places.inverse_deviation")};
}

Tensor inverse_deviation_of(ConstTensorView variance, double epsilon) {
  Tensor result(variance.shape(), variance.dtype(), variance.stream());
  if (checks::on_cuda(variance)) {
    jit::DeviceRunner runner = cuda::runner_for(variance);
    cuda::invert_deviations(runner, variance, epsilon, result.view());
    return result;
  }
  const auto fill = [&]<class C>(C) {
    for (std::int64_t c = 0; c < variance.elements(); ++c) {
      const auto value = static_cast<double>(variance.data<C>()[c]);
      result.data<C>()[c] = static_cast<C>(1.0 / std::sqrt(value + epsilon));
    }
  };
  if (variance.dtype() == DType::f64)
    fill(double{});
  else
    fill(float{});
  return result;
}

}   // namespace

Normalized batch_norm_training(ConstTensorView features, ConstTensorView weight,
                               ConstTensorView bias, TensorView running_mean,
                               TensorView running_variance, const BatchNormOptions& options,
                               const AfterNorm& after, const NormalizedPlaces& places) {
  const char* op = "batch_norm_training";
  check_batch_input(features, weight, bias, options.epsilon, op);
  const RowsInUse used(options.rows, features, op);
  const std::int64_t channels = features.extent(1);
  checks::norm_parameters(running_mean, running_variance, channels, features.dtype(), op,
                          "running_mean", "running_variance");
  checks::same_device(running_mean, features, op, "running_mean", "features");
  checks::same_device(running_variance, features, op, "running_variance", "features");
  check_batches(options.batches, features, op);
  PUMICE_EXPECTS(options.momentum >= 0 && options.momentum <= 1, op,
                 ": momentum = ", options.momentum, "; it is the share of the new batch, 0 to 1");
  PUMICE_EXPECTS(
      !used.host_knows() || used.bound() != 1, op,
      ": features has 1 row, which has no variance; train on at least 2 rows, or evaluate "
      "(model.eval() in Python)");
  if (after.residual.defined()) {
    checks::same_shape(after.residual, features, op, "residual", "features");
    checks::same_device(after.residual, features, op, "residual", "features");
  }
  Normalized result = empty_result(features, {channels}, places);
  features = used.of(features);
  const AfterNorm then{.residual = used.of(after.residual), .relu = after.relu};
  const TensorView output = used.of(result.output.view());
  if (checks::on_cuda(features)) {
    jit::DeviceRunner runner = cuda::runner_for(features);
    cuda::normalize_by_own(
        runner, {.rows = used.ref()}, features,
        {.mean = result.mean.view(),
         .inverse_deviation = result.inverse_deviation.view(),
         .epsilon = options.epsilon,
         .running = {running_mean, running_variance, options.batches, options.momentum},
         .reports_single_row = !used.host_knows()},
        weight, bias, output, {.residual = then.residual, .relu = then.relu});
    return result;
  }
  const std::int64_t rows = used.bound();
  const cpu::RowChunks chunks(rows, channels);
  const cpu::Moments moments = cpu::moments(features, chunks);
  store(moments.mean, result.mean.view());
  store(inverse_deviations(moments.variance, options.epsilon), result.inverse_deviation.view());
  Tensor wide_weight;
  Tensor wide_bias;
  const DType compute = result.mean.dtype();
  cpu::normalize(features, chunks, result.mean, result.inverse_deviation,
                 widened(weight, compute, wide_weight), widened(bias, compute, wide_bias), output);
  apply_on_host(then, output);
  if (rows > 0) {
    const auto count = static_cast<double>(rows);
    move_towards(running_mean, moments.mean, options.momentum, 1.0);
    move_towards(running_variance, moments.variance, options.momentum, count / (count - 1));
    if (options.batches.defined()) ++*options.batches.data<std::int64_t>();
  }
  return result;
}

NormGradients batch_norm_training_gradient(ConstTensorView features, ConstTensorView grad_output,
                                           ConstTensorView weight, ConstTensorView mean,
                                           ConstTensorView inverse_deviation,
                                           const BeforeNormGradient& before,
                                           const NormGradientPlaces& places) {
  const char* op = "batch_norm_training_gradient";
  check_batch_input(features, weight, {}, 0, op);
  check_gradient(features, grad_output, mean, inverse_deviation, {features.row_elements()}, op);
  if (before.output.defined()) {
    checks::same_shape(before.output, features, op, "output", "features");
    checks::same_device(before.output, features, op, "output", "features");
  }
  const RowsInUse used(before.rows, features, op);
  const DType compute = checks::compute_dtype(features.dtype());
  const DType of_parameters = weight.defined() ? weight.dtype() : compute;
  NormGradients result = empty_gradients(features, of_parameters, places);
  if (before.residual) {
    result.residual = places.residual.make(features.shape(), features.dtype(), features.stream(),
                                           "places.residual");
  }
  features = used.of(features);
  grad_output = used.of(grad_output);
  const ConstTensorView relu = used.of(before.output);
  const cuda::NormGradientViews views = views_of(result, used);
  if (checks::on_cuda(features)) {
    jit::DeviceRunner runner = cuda::runner_for(features);
    cuda::normalize_gradient(runner, {.rows = used.ref()}, features, grad_output, mean,
                             inverse_deviation, weight, false, views, relu);
    return result;
  }
  Tensor own;   // what reaches the residual reaches the norm too
  TensorView passed = views.residual;
  if (relu.defined()) {
    if (!passed.defined()) passed = (own = Tensor(features.shape(), features.dtype())).view();
    pass_relu_on_host(grad_output, relu, passed);
    grad_output = passed;
  } else if (passed.defined()) {
    copy_async(passed, grad_output, passed.stream());
  }
  Tensor wide_weight;
  Tensor sums[2];
  const bool is_narrow = of_parameters != compute;
  for (Tensor& one : sums) {
    if (is_narrow) one = Tensor({features.extent(1)}, compute);
  }
  cpu::normalize_gradient(features, grad_output, {features.rows(), features.extent(1)}, mean,
                          inverse_deviation, widened(weight, compute, wide_weight), false,
                          views.features, is_narrow ? sums[0].view() : views.weight,
                          is_narrow ? sums[1].view() : views.bias);
  if (is_narrow) {
    convert_on_host(result.weight.view(), sums[0]);
    convert_on_host(result.bias.view(), sums[1]);
  }
  return result;
}

Tensor batch_norm_inference(ConstTensorView features, ConstTensorView mean,
                            ConstTensorView variance, ConstTensorView weight, ConstTensorView bias,
                            double epsilon, const RowCount* rows, const Place& place) {
  const char* op = "batch_norm_inference";
  check_input(features, weight, bias, epsilon, op);
  check_statistics(mean, variance, features, {features.extent(1)}, op, "variance");
  const RowsInUse used(rows, features, op);
  const Tensor deviation = inverse_deviation_of(variance, epsilon);
  Tensor output = place.make(features.shape(), features.dtype(), features.stream());
  features = used.of(features);
  if (checks::on_cuda(features)) {
    jit::DeviceRunner runner = cuda::runner_for(features);
    cuda::normalize(runner, {.rows = used.ref()}, features, mean, deviation, weight, bias,
                    used.of(output.view()));
    return output;
  }
  cpu::normalize(features, {features.rows(), features.extent(1)}, mean, deviation, weight, bias,
                 used.of(output.view()));
  return output;
}

NormGradients batch_norm_inference_gradient(ConstTensorView features, ConstTensorView grad_output,
                                            ConstTensorView mean, ConstTensorView variance,
                                            ConstTensorView weight, double epsilon,
                                            const RowCount* rows,
                                            const NormGradientPlaces& places) {
  const char* op = "batch_norm_inference_gradient";
  check_input(features, weight, {}, epsilon, op);
  check_gradient(features, grad_output, mean, variance, {features.row_elements()}, op);
  NormGradients result = empty_gradients(features, checks::compute_dtype(features.dtype()), places);
  const RowsInUse used(rows, features, op);
  const Tensor deviation = inverse_deviation_of(variance, epsilon);
  features = used.of(features);
  grad_output = used.of(grad_output);
  const cuda::NormGradientViews views = views_of(result, used);
  if (checks::on_cuda(features)) {
    jit::DeviceRunner runner = cuda::runner_for(features);
    cuda::normalize_gradient(runner, {.rows = used.ref()}, features, grad_output, mean, deviation,
                             weight, true, views);
    return result;
  }
  cpu::normalize_gradient(features, grad_output, {features.rows(), features.extent(1)}, mean,
                          deviation, weight, true, views.features, views.weight, views.bias);
  return result;
}

Normalized layer_norm(ConstTensorView features, ConstTensorView weight, ConstTensorView bias,
                      double epsilon, const RowCount* rows, const NormalizedPlaces& places) {
  check_input(features, weight, bias, epsilon, "layer_norm");
  PUMICE_EXPECTS(features.extent(1) > 0,
                 "layer_norm: features has no channels to normalise over; give it at least 1");
  const RowsInUse used(rows, features, "layer_norm");
  Normalized result = empty_result(features, {features.rows()}, places);
  features = used.of(features);
  const TensorView output = used.of(result.output.view());
  const TensorView mean = used.of(result.mean.view());
  const TensorView inverse_deviation = used.of(result.inverse_deviation.view());
  if (checks::on_cuda(features)) {
    jit::DeviceRunner runner = cuda::runner_for(features);
    cuda::layer_norm(runner, used.ref(), features, weight, bias, epsilon, output, mean,
                     inverse_deviation);
    return result;
  }
  cpu::layer_norm(features, weight, bias, epsilon, output, mean, inverse_deviation);
  return result;
}

NormGradients layer_norm_gradient(ConstTensorView features, ConstTensorView grad_output,
                                  ConstTensorView weight, ConstTensorView mean,
                                  ConstTensorView inverse_deviation, const RowCount* rows,
                                  const NormGradientPlaces& places) {
  const char* op = "layer_norm_gradient";
  check_input(features, weight, {}, 0, op);
  check_gradient(features, grad_output, mean, inverse_deviation, {features.rows()}, op);
  const RowsInUse used(rows, features, op);
  NormGradients result = empty_gradients(features, checks::compute_dtype(features.dtype()), places);
  features = used.of(features);
  grad_output = used.of(grad_output);
  mean = used.of(mean);
  inverse_deviation = used.of(inverse_deviation);
  const cuda::NormGradientViews views = views_of(result, used);
  if (checks::on_cuda(features)) {
    jit::DeviceRunner runner = cuda::runner_for(features);
    cuda::layer_norm_gradient(runner, used.ref(), features, grad_output, weight, mean,
                              inverse_deviation, views);
    return result;
  }
  cpu::layer_norm_gradient(features, grad_output, weight, mean, inverse_deviation, views.features,
                           views.weight, views.bias);
  return result;
}

Normalized instance_norm(ConstTensorView features, const CoordinateSet& set, ConstTensorView weight,
                         ConstTensorView bias, double epsilon, const NormalizedPlaces& places) {
  const char* op = "instance_norm";
  check_input(features, weight, bias, epsilon, op);
  check_set(set, features, op);
  if (checks::on_cuda(features)) {
    jit::DeviceRunner runner = cuda::runner_for(features);
    const cuda::SetItems items(runner, set);
    Normalized result = empty_result(features, {set.batch_size(), features.extent(1)}, places);
    cuda::normalize_by_own(runner, items.rows(), features,
                           {.mean = result.mean.view(),
                            .inverse_deviation = result.inverse_deviation.view(),
                            .epsilon = epsilon,
                            .empty = EmptyItem::zero},
                           weight, bias, result.output.view());
    return result;
  }
  const cpu::RowChunks rows(set, features.extent(1));
  for (std::int64_t item = 0; item < rows.items(); ++item) {
    PUMICE_EXPECTS(rows.rows_of(item) != 1, op, ": batch item ", item,
                   " has 1 row, which has no variance; give every item at least 2 rows or none");
  }
  const Shape statistics{rows.items(), features.extent(1)};
  Normalized result = empty_result(features, statistics, places);
  const cpu::Moments moments = cpu::moments(features, rows);
  std::vector<double> scales = inverse_deviations(moments.variance, epsilon);
  for (std::int64_t i = 0; i < statistics.elements(); ++i) {
    if (rows.rows_of(i / features.extent(1)) == 0) scales[static_cast<std::size_t>(i)] = 0;
  }
  store(moments.mean, result.mean.view());
  store(scales, result.inverse_deviation.view());
  cpu::normalize(features, rows, result.mean, result.inverse_deviation, weight, bias,
                 result.output.view());
  return result;
}

NormGradients instance_norm_gradient(ConstTensorView features, ConstTensorView grad_output,
                                     const CoordinateSet& set, ConstTensorView weight,
                                     ConstTensorView mean, ConstTensorView inverse_deviation,
                                     const NormGradientPlaces& places) {
  const char* op = "instance_norm_gradient";
  check_input(features, weight, {}, 0, op);
  check_gradient(features, grad_output, mean, inverse_deviation,
                 {set.batch_size(), features.row_elements()}, op);
  check_set(set, features, op);
  NormGradients result = empty_gradients(features, checks::compute_dtype(features.dtype()), places);
  if (checks::on_cuda(features)) {
    jit::DeviceRunner runner = cuda::runner_for(features);
    const cuda::SetItems items(runner, set);
    cuda::normalize_gradient(runner, items.rows(), features, grad_output, mean, inverse_deviation,
                             weight, false, views_of(result));
    return result;
  }
  cpu::normalize_gradient(features, grad_output, {set, features.extent(1)}, mean, inverse_deviation,
                          weight, false, result.features.view(), result.weight.view(),
                          result.bias.view());
  return result;
}

}   // namespace pumice
