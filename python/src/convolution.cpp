// Convolution over a map, and its gradients.
#include <optional>
#include <string>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <pumice/core/error.hpp>
#include <pumice/ops/convolution.hpp>

#include "arguments.hpp"
#include "plans.hpp"
#include "sites.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

/// Weights in the form that kernels read, kept between calls for as long as nobody changes them.
struct KeptWeights {
  pumice::PackedWeights forms;
  const void* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t version = -1;

  void clear() {
    forms.clear();
    data = nullptr;
  }

  void keep_for(const ConstTensorView& weight, std::int64_t now) {
    if (weight.raw() == data && weight.dtype() == dtype && now == version) return;
    forms.clear();
    data = weight.raw();
    dtype = weight.dtype();
    version = now;
  }
};

struct Settings {
  std::int64_t groups;
  Numerics numerics;
  std::optional<std::string> dataflow;
  const Plans* plans;

  ConvolutionOptions options(Direction direction) const {
    ConvolutionOptions result{.groups = groups,
                              .plan = plan_in(plans, direction),
                              .numerics = numerics,
                              .rounds_weight = true};
    // A weight gradient has a dataflow of its own.
    if (dataflow && direction != Direction::weight_gradient)
      result.dataflow = parse_dataflow(*dataflow);
    return result;
  }
};

struct Behind {
  nb::handle scale;
  nb::handle shift;
  nb::handle residual;
  const char* shift_name = "shift";
  Activation activation = Activation::none;
  double slope = 0.01;
};

nb::object forward(nb::handle features, nb::handle weight, const Map& map, const Settings& settings,
                   const Behind& behind, KeptWeights* kept, std::int64_t version) {
  const Call call(features, home_of(map));
  const ConstTensorView x = call.view(features, "features");
  const ConstTensorView w = call.view(weight, "weight");
  PUMICE_EXPECTS(w.rank() == 3, "weight has shape ", to_string(w.shape()),
                 ": give [offsets, input channels / groups, output channels]");
  const KernelMapView view = map.view();
  ConvolutionOptions options = settings.options(Direction::forward);
  options.epilogue = {.scale = call.view(behind.scale, "scale"),
                      .shift = call.view(behind.shift, behind.shift_name),
                      .residual = call.view(behind.residual, "residual"),
                      .activation = behind.activation,
                      .slope = behind.slope};
  // On the CPU calls run without the GIL, and threads may share a layer.
  if (kept != nullptr && x.device().kind == DeviceKind::cuda) {
    kept->keep_for(w, version);
    options.kept = &kept->forms;
  }
  const Tensor output = call.run([&] { return convolution(x, w, view, options, call.results()); });
  return call.give(output);
}

nb::object input_gradient(nb::handle grad_output, nb::handle weight, const Map& map,
                          const Settings& settings) {
  const Call call(grad_output, home_of(map));
  const ConstTensorView g = call.view(grad_output, "grad_output");
  const ConstTensorView w = call.view(weight, "weight");
  PUMICE_EXPECTS(w.rank() == 3, "weight has shape ", to_string(w.shape()),
                 ": give [offsets, input channels / groups, output channels]");
  const KernelMapView view = map.view();
  const ConvolutionOptions options = settings.options(Direction::input_gradient);
  return call.give(
      call.run([&] { return convolution_input_gradient(g, w, view, options, call.results()); }));
}

nb::object weight_gradient(nb::handle features, nb::handle grad_output, const Map& map,
                           const Settings& settings) {
  const Call call(features, home_of(map));
  const ConstTensorView x = call.view(features, "features");
  const ConstTensorView g = call.view(grad_output, "grad_output");
  PUMICE_EXPECTS(x.rank() == 2 && g.rank() == 2, "features and grad_output are [rows, channels]");
  const KernelMapView view = map.view();
  const ConvolutionOptions options = settings.options(Direction::weight_gradient);
  return call.give(
      call.run([&] { return convolution_weight_gradient(x, g, view, options, call.results()); }));
}

/// Which gradients a backward pass wants.
struct Wanted {
  bool features;
  bool weight;
  bool bias;
};

/// All gradients of a convolution at once, None where they are not wanted. That of the weight is of
/// the weight's type, or of the features' type; that of a bias is of the type sums are computed in.
nb::tuple gradients(nb::handle features, nb::handle weight, nb::handle grad_output, const Map& map,
                    const Settings& settings, const Wanted& wanted) {
  const Call call(grad_output, home_of(map));
  const ConstTensorView g = call.view(grad_output, "grad_output");
  const ConstTensorView w = call.view(weight, "weight");
  PUMICE_EXPECTS(g.rank() == 2 && w.rank() == 3, "grad_output has shape ", to_string(g.shape()),
                 " and weight ", to_string(w.shape()),
                 ": give [rows, channels] and [offsets, input channels / groups, output channels]");
  const KernelMapView view = map.view();
  FrameworkResults& results = call.results();
  nb::object of_features = nb::none();
  nb::object of_weight = nb::none();
  nb::object of_bias = nb::none();
  if (wanted.features) {
    const ConvolutionOptions options = settings.options(Direction::input_gradient);
    of_features = call.give(
        call.run([&] { return convolution_input_gradient(g, w, view, options, results); }));
  }
  if (wanted.weight) {
    const ConstTensorView x = call.view(features, "features");
    ConvolutionOptions options = settings.options(Direction::weight_gradient);
    options.wide_weight_gradient = w.dtype() == DType::f32;
    of_weight = call.give(
        call.run([&] { return convolution_weight_gradient(x, g, view, options, results); }));
  }
  if (wanted.bias)
    of_bias = call.give(call.run([&] { return bias_gradient(g, out_row_count(view), results); }));
  return nb::make_tuple(std::move(of_features), std::move(of_weight), std::move(of_bias));
}

Activation parse_activation(int number) {
  PUMICE_EXPECTS(number >= 0 && number <= static_cast<int>(Activation::tanh), "activation ", number,
                 " is none that can follow a convolution");
  return static_cast<Activation>(number);
}

}   // namespace

void bind_convolution(nb::module_& module) {
  nb::class_<KeptWeights>(module, "PackedWeights", "Weights as kernels read them.")
      .def(nb::init<>())
      .def("clear", &KeptWeights::clear, "Frees them.");
  define(
      module, "convolution",
      [](nb::handle features, nb::handle weight, const Map& map, nb::handle bias,
         std::int64_t groups, bool deterministic, bool tf32, std::optional<std::string> dataflow,
         const Plans* plans, KeptWeights* kept, std::int64_t version) {
        return forward(
            features, weight, map, {groups, {deterministic, tf32}, std::move(dataflow), plans},
            {.scale = nb::none(), .shift = bias, .residual = nb::none(), .shift_name = "bias"},
            kept, version);
      },
      "features"_a, "weight"_a, "map"_a, "bias"_a.none(), "groups"_a, "deterministic"_a, "tf32"_a,
      "dataflow"_a.none(), "plans"_a.none(), "kept"_a.none(), "version"_a);
  define(
      module, "fused_convolution",
      [](nb::handle features, nb::handle weight, const Map& map, nb::handle scale, nb::handle shift,
         nb::handle residual, int activation, double slope, std::int64_t groups, bool deterministic,
         bool tf32, const Plans* plans, KeptWeights* kept, std::int64_t version) {
        return forward(features, weight, map, {groups, {deterministic, tf32}, std::nullopt, plans},
                       {.scale = scale,
                        .shift = shift,
                        .residual = residual,
                        .activation = parse_activation(activation),
                        .slope = slope},
                       kept, version);
      },
      "features"_a, "weight"_a, "map"_a, "scale"_a.none(), "shift"_a.none(), "residual"_a.none(),
      "activation"_a, "slope"_a, "groups"_a, "deterministic"_a, "tf32"_a, "plans"_a.none(),
      "kept"_a.none(), "version"_a,
      "activation(convolution * scale + shift + residual), for inference.");
  define(
      module, "convolution_input_gradient",
      [](nb::handle grad_output, nb::handle weight, const Map& map, std::int64_t groups,
         bool deterministic, bool tf32, std::optional<std::string> dataflow, const Plans* plans) {
        return input_gradient(grad_output, weight, map,
                              {groups, {deterministic, tf32}, std::move(dataflow), plans});
      },
      "grad_output"_a, "weight"_a, "map"_a, "groups"_a, "deterministic"_a, "tf32"_a,
      "dataflow"_a.none(), "plans"_a.none());
  define(
      module, "convolution_gradients",
      [](nb::handle features, nb::handle weight, nb::handle grad_output, const Map& map,
         std::int64_t groups, bool deterministic, bool tf32, std::optional<std::string> dataflow,
         const Plans* plans, bool of_features, bool of_weight, bool of_bias) {
        return gradients(features, weight, grad_output, map,
                         {groups, {deterministic, tf32}, std::move(dataflow), plans},
                         {of_features, of_weight, of_bias});
      },
      "features"_a, "weight"_a, "grad_output"_a, "map"_a, "groups"_a, "deterministic"_a, "tf32"_a,
      "dataflow"_a.none(), "plans"_a.none(), "of_features"_a, "of_weight"_a, "of_bias"_a,
      "(of the features, of the weight, of the bias), None where not wanted.");
  define(
      module, "convolution_weight_gradient",
      [](nb::handle features, nb::handle grad_output, const Map& map, std::int64_t groups,
         bool deterministic, bool tf32, const Plans* plans) {
        return weight_gradient(features, grad_output, map,
                               {groups, {deterministic, tf32}, std::nullopt, plans});
      },
      "features"_a, "grad_output"_a, "map"_a, "groups"_a, "deterministic"_a, "tf32"_a,
      "plans"_a.none());
}

}   // namespace pumice::python
