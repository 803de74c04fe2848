// Operators whose sums over rows take the number of rows in use, where that may be known on the
// device alone: dense layers, norms, sums, and rows cleared past the count.
#include <optional>

#include <pumice/core/error.hpp>
#include <pumice/ops/linear.hpp>
#include <pumice/ops/normalization.hpp>
#include <pumice/ops/rows.hpp>

#include "arguments.hpp"
#include "row_counts.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

nb::object cleared(nb::handle features, nb::handle count) {
  const Call call(features, home_of_count(count));
  const ConstTensorView x = call.view(features, "features");
  const GivenCount rows(call, count, x);
  PUMICE_EXPECTS(rows.get() != nullptr,
                 "count is None: give the sites of the rows, or an int64 "
                 "tensor of one element");
  return call.give(call.run([&] { return cleared_tail(x, *rows.get(), call.results()); }));
}

nb::object dense(nb::handle features, nb::handle weight, nb::handle bias, nb::handle count,
                 bool deterministic, bool tf32) {
  const Call call(features, home_of_count(count));
  const ConstTensorView x = call.matrix(features, "features");
  const ConstTensorView w = call.matrix(weight, "weight");
  const ConstTensorView b = call.view(bias, "bias");
  const GivenCount rows(call, count, x);
  const LinearOptions options{.numerics = {deterministic, tf32}, .rows = rows.get()};
  return call.give(call.run([&] { return linear_transposed(x, w, b, options, call.results()); }));
}

/// Which gradients are wanted.
struct Wanted {
  bool features;
  bool weight;
  bool bias;
};

nb::tuple dense_gradients(nb::handle features, nb::handle weight, nb::handle grad_output,
                          nb::handle count, const Numerics& numerics, const Wanted& wanted) {
  const Call call(grad_output, home_of_count(count));
  const ConstTensorView x = call.matrix(features, "features");
  const ConstTensorView w = call.matrix(weight, "weight");
  const ConstTensorView g = call.matrix(grad_output, "grad_output");
  const GivenCount rows(call, count, g);
  const LinearOptions options{.numerics = numerics, .rows = rows.get()};
  FrameworkResults& results = call.results();
  nb::object of_features = nb::none();
  nb::object of_weight = nb::none();
  nb::object of_bias = nb::none();
  if (wanted.features) {
    of_features = call.give(
        call.run([&] { return linear_transposed_input_gradient(g, w, options, results); }));
  }
  if (wanted.weight) {   // with the two exchanged it is that of a weight [out, in]
    of_weight = call.give(call.run([&] { return linear_weight_gradient(g, x, options, results); }));
  }
  if (wanted.bias) {
    of_bias = call.give(call.run([&] { return linear_bias_gradient(g, rows.get(), results); }));
  }
  return nb::make_tuple(std::move(of_features), std::move(of_weight), std::move(of_bias));
}

nb::tuple normal_rows(nb::handle features, nb::handle weight, nb::handle bias, double epsilon,
                      nb::handle count) {
  const Call call(features, home_of_count(count));
  const ConstTensorView x = call.matrix(features, "features");
  const ConstTensorView w = call.view(weight, "weight");
  const ConstTensorView b = call.view(bias, "bias");
  const GivenCount rows(call, count, x);
  FrameworkResults& results = call.results();
  const Normalized made = call.run([&] {
    return layer_norm(x, w, b, epsilon, rows.get(),
                      {.output = results, .mean = results, .inverse_deviation = results});
  });
  return nb::make_tuple(call.give(made.output), call.give(made.mean),
                        call.give(made.inverse_deviation));
}

nb::tuple given(const Call& call, const NormGradients& made) {
  return nb::make_tuple(call.give(made.features), call.give(made.weight), call.give(made.bias));
}

nb::tuple normal_rows_gradient(nb::handle features, nb::handle grad_output, nb::handle weight,
                               nb::handle mean, nb::handle inverse_deviation, nb::handle count) {
  const Call call(features, home_of_count(count));
  const ConstTensorView x = call.matrix(features, "features");
  const ConstTensorView g = call.view(grad_output, "grad_output");
  const ConstTensorView w = call.view(weight, "weight");
  const ConstTensorView m = call.view(mean, "mean");
  const ConstTensorView d = call.view(inverse_deviation, "inverse_deviation");
  const GivenCount rows(call, count, x);
  FrameworkResults& results = call.results();
  return given(call, call.run([&] {
    return layer_norm_gradient(x, g, w, m, d, rows.get(),
                               {.features = results, .weight = results, .bias = results});
  }));
}

nb::tuple normal_items(nb::handle features, const Sites& sites, nb::handle weight, nb::handle bias,
                       double epsilon) {
  const Call call(features, home_of(sites));
  const ConstTensorView x = call.matrix(features, "features");
  const ConstTensorView w = call.view(weight, "weight");
  const ConstTensorView b = call.view(bias, "bias");
  FrameworkResults& results = call.results();
  const Normalized made = call.run([&] {
    return instance_norm(x, *sites.set, w, b, epsilon,
                         {.output = results, .mean = results, .inverse_deviation = results});
  });
  return nb::make_tuple(call.give(made.output), call.give(made.mean),
                        call.give(made.inverse_deviation));
}

nb::tuple normal_items_gradient(nb::handle features, nb::handle grad_output, const Sites& sites,
                                nb::handle weight, nb::handle mean, nb::handle inverse_deviation) {
  const Call call(features, home_of(sites));
  const ConstTensorView x = call.matrix(features, "features");
  const ConstTensorView g = call.view(grad_output, "grad_output");
  const ConstTensorView w = call.view(weight, "weight");
  const ConstTensorView m = call.view(mean, "mean");
  const ConstTensorView d = call.view(inverse_deviation, "inverse_deviation");
  FrameworkResults& results = call.results();
  return given(call, call.run([&] {
    return instance_norm_gradient(x, g, *sites.set, w, m, d,
                                  {.features = results, .weight = results, .bias = results});
  }));
}

nb::object settled(nb::handle features, nb::handle mean, nb::handle variance, nb::handle weight,
                   nb::handle bias, double epsilon, nb::handle count) {
  const Call call(features, home_of_count(count));
  const ConstTensorView x = call.matrix(features, "features");
  const ConstTensorView m = call.view(mean, "mean");
  const ConstTensorView v = call.view(variance, "variance");
  const ConstTensorView w = call.view(weight, "weight");
  const ConstTensorView b = call.view(bias, "bias");
  const GivenCount rows(call, count, x);
  return call.give(call.run(
      [&] { return batch_norm_inference(x, m, v, w, b, epsilon, rows.get(), call.results()); }));
}

nb::tuple settled_gradient(nb::handle features, nb::handle grad_output, nb::handle mean,
                           nb::handle variance, nb::handle weight, double epsilon,
                           nb::handle count) {
  const Call call(features, home_of_count(count));
  const ConstTensorView x = call.matrix(features, "features");
  const ConstTensorView g = call.view(grad_output, "grad_output");
  const ConstTensorView m = call.view(mean, "mean");
  const ConstTensorView v = call.view(variance, "variance");
  const ConstTensorView w = call.view(weight, "weight");
  const GivenCount rows(call, count, x);
  FrameworkResults& results = call.results();
  return given(call, call.run([&] {
    return batch_norm_inference_gradient(x, g, m, v, w, epsilon, rows.get(),
                                         {.features = results, .weight = results, .bias = results});
  }));
}

nb::object sums(nb::handle features, nb::handle count) {
  const Call call(features, home_of_count(count));
  const ConstTensorView x = call.matrix(features, "features");
  const GivenCount rows(call, count, x);
  return call.give(call.run([&] { return linear_bias_gradient(x, rows.get(), call.results()); }));
}

}   // namespace

void bind_counted(nb::module_& module) {
  define(module, "counts_on_device", &counts_on_device, "count"_a,
         "Whether it is sites, or a map onto sites, whose number only the device knows.");
  define(module, "clear_tail", &cleared, "features"_a, "count"_a,
         "A copy with zeros past the rows in use.");
  define(module, "linear", &dense, "features"_a, "weight"_a, "bias"_a.none(), "count"_a.none(),
         "deterministic"_a, "tf32"_a, "With a weight [out, in].");
  define(
      module, "linear_gradients",
      [](nb::handle features, nb::handle weight, nb::handle grad_output, nb::handle count,
         bool deterministic, bool tf32, bool of_features, bool of_weight, bool of_bias) {
        return dense_gradients(features, weight, grad_output, count, {deterministic, tf32},
                               {of_features, of_weight, of_bias});
      },
      "features"_a, "weight"_a, "grad_output"_a, "count"_a.none(), "deterministic"_a, "tf32"_a,
      "of_features"_a, "of_weight"_a, "of_bias"_a,
      "(of the features, of the weight, of the bias), None where not wanted.");
  define(module, "layer_norm", &normal_rows, "features"_a, "weight"_a.none(), "bias"_a.none(),
         "epsilon"_a, "count"_a.none(), "(output, mean, inverse deviation)");
  define(module, "layer_norm_gradient", &normal_rows_gradient, "features"_a, "grad_output"_a,
         "weight"_a.none(), "mean"_a, "inverse_deviation"_a, "count"_a.none(),
         "(of the features, of the weight, of the bias)");
  define(module, "instance_norm", &normal_items, "features"_a, "sites"_a, "weight"_a.none(),
         "bias"_a.none(), "epsilon"_a, "(output, mean, inverse deviation)");
  define(module, "instance_norm_gradient", &normal_items_gradient, "features"_a, "grad_output"_a,
         "sites"_a, "weight"_a.none(), "mean"_a, "inverse_deviation"_a,
         "(of the features, of the weight, of the bias)");
  define(module, "batch_norm_inference", &settled, "features"_a, "mean"_a, "variance"_a,
         "weight"_a.none(), "bias"_a.none(), "epsilon"_a, "count"_a.none());
  define(module, "batch_norm_inference_gradient", &settled_gradient, "features"_a, "grad_output"_a,
         "mean"_a, "variance"_a, "weight"_a.none(), "epsilon"_a, "count"_a.none(),
         "(of the features, of the weight, of the bias)");
  define(module, "sum_rows", &sums, "features"_a, "count"_a.none(),
         "[rows, C] to [C], in the type that sums are kept in.");
}

}   // namespace pumice::python
