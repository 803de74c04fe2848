// Batch norm with what follows it in one pass, its gradient, and its fold into a convolution.
#include <optional>

#include <nanobind/stl/optional.h>
#include <pumice/ops/folded_norm.hpp>
#include <pumice/ops/normalization.hpp>

#include "arguments.hpp"
#include "row_counts.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

nb::tuple train(nb::handle features, nb::handle weight, nb::handle bias, nb::handle running_mean,
                nb::handle running_variance, nb::handle batches, double epsilon, double momentum,
                nb::handle residual, bool relu, nb::handle count) {
  const Call call(features, home_of_count(count));
  const ConstTensorView x = call.matrix(features, "features");
  const ConstTensorView w = call.view(weight, "weight");
  const ConstTensorView b = call.view(bias, "bias");
  const TensorView mean = mutable_view_of(running_mean, "running_mean", call.stream());
  const TensorView variance = mutable_view_of(running_variance, "running_variance", call.stream());
  const AfterNorm after{.residual = call.view(residual, "residual"), .relu = relu};
  const GivenCount rows(call, count, x);
  const BatchNormOptions options{
      .epsilon = epsilon,
      .momentum = momentum,
      .batches = single_view_of(batches, "num_batches_tracked", call.stream()),
      .rows = rows.get()};
  FrameworkResults& results = call.results();
  const Normalized made = call.run([&] {
    return batch_norm_training(x, w, b, mean, variance, options, after,
                               {.output = results, .mean = results, .inverse_deviation = results});
  });
  return nb::make_tuple(call.give(made.output), call.give(made.mean),
                        call.give(made.inverse_deviation));
}

nb::tuple gradient(nb::handle features, nb::handle grad_output, nb::handle weight, nb::handle mean,
                   nb::handle inverse_deviation, nb::handle output, bool of_residual,
                   nb::handle count) {
  const Call call(features, home_of_count(count));
  const ConstTensorView x = call.matrix(features, "features");
  const ConstTensorView g = call.view(grad_output, "grad_output");
  const ConstTensorView w = call.view(weight, "weight");
  const ConstTensorView m = call.view(mean, "mean");
  const ConstTensorView d = call.view(inverse_deviation, "inverse_deviation");
  const GivenCount rows(call, count, x);
  const BeforeNormGradient before{
      .output = call.view(output, "output"), .residual = of_residual, .rows = rows.get()};
  FrameworkResults& results = call.results();
  const NormGradients made = call.run([&] {
    return batch_norm_training_gradient(
        x, g, w, m, d, before,
        {.features = results, .weight = results, .bias = results, .residual = results});
  });
  return nb::make_tuple(call.give(made.features), call.give(made.weight), call.give(made.bias),
                        of_residual ? call.give(made.residual) : nb::none());
}

nb::tuple fold(nb::handle mean, nb::handle variance, nb::handle weight, nb::handle bias,
               nb::handle added_before, double epsilon) {
  const Call call(mean);
  const ConstTensorView m = call.view(mean, "mean");
  const ConstTensorView v = call.view(variance, "variance");
  const ConstTensorView w = call.view(weight, "weight");
  const ConstTensorView b = call.view(bias, "bias");
  const ConstTensorView before = call.view(added_before, "added_before");
  FrameworkResults& results = call.results();
  const ScaleShift made = call.run([&] {
    return fold_batch_norm(m, v, w, b, before, epsilon, {.scale = results, .shift = results});
  });
  return nb::make_tuple(call.give(made.scale), call.give(made.shift));
}

}   // namespace

void bind_normalization(nb::module_& module) {
  define(module, "batch_norm_training", &train, "features"_a, "weight"_a.none(), "bias"_a.none(),
         "running_mean"_a.none(), "running_variance"_a.none(), "batches"_a.none(), "epsilon"_a,
         "momentum"_a, "residual"_a.none(), "relu"_a, "count"_a.none(),
         "relu(norm + residual): (output, mean, inverse deviation). The running statistics "
         "move, and the number of batches goes up by one where there are rows.");
  define(module, "batch_norm_training_gradient", &gradient, "features"_a, "grad_output"_a,
         "weight"_a.none(), "mean"_a, "inverse_deviation"_a, "output"_a.none(), "of_residual"_a,
         "count"_a.none(),
         "(of the features, of the weight, of the bias, of the residual). `output`: of the "
         "ReLU.");
  define(module, "fold_batch_norm", &fold, "mean"_a, "variance"_a, "weight"_a.none(),
         "bias"_a.none(), "added_before"_a.none(), "epsilon"_a, "(scale, shift)");
}

}   // namespace pumice::python
