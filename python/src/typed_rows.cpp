// Rows that are grouped by type, and their linear layers.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <pumice/core/error.hpp>
#include <pumice/ops/rgms.hpp>

#include "arguments.hpp"
#include "graphs.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

TypedRowsHandle create(nb::handle begin, const std::string& device) {
  const ConstTensorView bounds = view_of(begin, "begin", {});
  PUMICE_EXPECTS(
      bounds.defined() && bounds.dtype() == DType::i64 && bounds.rank() == 1 &&
          bounds.device().kind == DeviceKind::cpu,
      "begin is no int64 [types + 1] on the CPU: give where each type begins, and the end");
  const Call call(parse_device(device));
  const auto span = bounds.span<std::int64_t>();
  return {std::make_shared<const TypedRows>(std::vector<std::int64_t>(span.begin(), span.end()),
                                            call.stream())};
}

TypedLinearOptions options_of(bool deterministic, bool tf32) {
  return {.numerics = {.deterministic = deterministic, .tf32 = tf32}};
}

nb::object multiply(const TypedRowsHandle& types, nb::handle features, nb::handle weight,
                    bool tf32) {
  const Call call(features, home_of(types));
  const ConstTensorView x = call.view(features, "features");
  const ConstTensorView w = call.view(weight, "weight");
  return call.give(call.run(
      [&] { return typed_linear(x, w, *types.rows, options_of(false, tf32), call.results()); }));
}

nb::object input_gradient(const TypedRowsHandle& types, nb::handle grad_output, nb::handle weight,
                          bool tf32) {
  const Call call(grad_output, home_of(types));
  const ConstTensorView g = call.view(grad_output, "grad_output");
  const ConstTensorView w = call.view(weight, "weight");
  return call.give(call.run([&] {
    return typed_linear_input_gradient(g, w, *types.rows, options_of(false, tf32), call.results());
  }));
}

nb::object weight_gradient(const TypedRowsHandle& types, nb::handle features,
                           nb::handle grad_output, bool deterministic, bool tf32) {
  const Call call(grad_output, home_of(types));
  const ConstTensorView x = call.view(features, "features");
  const ConstTensorView g = call.view(grad_output, "grad_output");
  return call.give(call.run([&] {
    return typed_linear_weight_gradient(x, g, *types.rows, options_of(deterministic, tf32),
                                        call.results());
  }));
}

RootTerm root_of(const Call& call, nb::handle targets, nb::handle root, nb::handle bias) {
  return {.targets = call.view(targets, "targets"),
          .root = call.view(root, "root"),
          .bias = call.view(bias, "bias")};
}

nb::tuple relational(const GraphHandle& gather, const TypedRowsHandle& types,
                     const GraphHandle& scatter, nb::handle values, nb::handle features,
                     nb::handle weight, const std::string& reduce, nb::handle targets,
                     nb::handle root, nb::handle bias, bool keeps, bool tf32) {
  const Call call(features, home_of(types));
  const ConstTensorView v = call.view(values, "edge_weight");
  const ConstTensorView x = call.view(features, "features");
  const ConstTensorView w = call.view(weight, "weight");
  const RootTerm term = root_of(call, targets, root, bias);
  const EntryReduction reduction = reduction_of(reduce);
  FrameworkResults& results = call.results();
  const TypedGraphView graph{
      .gather = gather.view(), .segments = types.rows.get(), .scatter = scatter.view()};
  const RgmsResult made = call.run([&] {
    return rgms(
        graph, v, x, w, reduction, options_of(false, tf32),
        {.output = results, .gathered = keeps ? Place(results) : Place(), .source = results}, term);
  });
  if (!keeps) return nb::make_tuple(call.give(made.output), nb::none(), nb::none());
  return nb::make_tuple(call.give(made.output), call.give(made.gathered),
                        made.source.defined() ? call.give(made.source) : nb::none());
}

nb::tuple relational_gradients(const GraphHandle& gather, const TypedRowsHandle& types,
                               const GraphHandle& scatter, nb::handle values, nb::handle features,
                               nb::handle weight, nb::handle gathered, nb::handle source,
                               nb::handle grad_output, const std::string& reduce,
                               nb::handle targets, nb::handle root, nb::handle bias,
                               const std::array<bool, 6>& wanted, bool deterministic, bool tf32) {
  const Call call(grad_output, home_of(types));
  const ConstTensorView v = call.view(values, "edge_weight");
  const ConstTensorView x = call.view(features, "features");
  const ConstTensorView w = call.view(weight, "weight");
  const ConstTensorView between = call.view(gathered, "gathered");
  const ConstTensorView picked = call.view(source, "source");
  const ConstTensorView g = call.view(grad_output, "grad_output");
  const RootTerm term = root_of(call, targets, root, bias);
  const EntryReduction reduction = reduction_of(reduce);
  FrameworkResults& results = call.results();
  const RgmsWanted of{.features = wanted[1],
                      .weight = wanted[2],
                      .values = wanted[0],
                      .targets = wanted[3],
                      .root = wanted[4],
                      .bias = wanted[5]};
  const RgmsGradients made = call.run([&] {
    const auto gather_back = of.features ? gather.backwards(call.stream()) : nullptr;
    const auto scatter_back = scatter.backwards(call.stream());
    return rgms_gradients(
        {.gather = gather.view(),
         .segments = types.rows.get(),
         .scatter = scatter.view(),
         .gather_backwards = gather_back == nullptr ? CsrView() : gather_back->view(),
         .scatter_backwards = scatter_back->view()},
        v, x, w, between, picked, g, reduction, of, options_of(deterministic, tf32),
        {.features = results,
         .weight = results,
         .values = results,
         .targets = results,
         .root = results,
         .bias = results},
        term);
  });
  const auto given = [&](const Tensor& tensor) {
    return tensor.defined() ? call.give(tensor) : nb::none();
  };
  return nb::make_tuple(given(made.values), given(made.features), given(made.weight),
                        given(made.targets), given(made.root), given(made.bias));
}

}   // namespace

void bind_typed_rows(nb::module_& module) {
  nb::class_<TypedRowsHandle>(module, "TypedRows", "Rows that are grouped by type.")
      .def_prop_ro("types", [](const TypedRowsHandle& types) { return types.rows->types(); })
      .def_prop_ro("rows", [](const TypedRowsHandle& types) { return types.rows->rows(); })
      .def_prop_ro("device",
                   [](const TypedRowsHandle& types) { return to_string(home_of(types).device); });
  define(module, "create_typed_rows", &create, "begin"_a, "device"_a,
         "begin: int64 [types + 1] on the CPU, where the rows of each type begin.");
  define(module, "typed_linear", &multiply, "types"_a, "features"_a, "weight"_a, "tf32"_a,
         "[rows, C_in] and [types, C_in, C_out] to [rows, C_out].");
  define(module, "rgms", &relational, "gather"_a, "types"_a, "scatter"_a, "edge_weight"_a.none(),
         "features"_a, "weight"_a, "reduce"_a, "targets"_a.none(), "root"_a.none(), "bias"_a.none(),
         "keeps"_a, "tf32"_a,
         "([targets, C_out], and where it keeps what gradients need: [segments, C_in] gathered, "
         "edges that were picked or None). Added to targets · root + bias; targets None: the "
         "features.");
  define(
      module, "rgms_gradients", &relational_gradients, "gather"_a, "types"_a, "scatter"_a,
      "edge_weight"_a.none(), "features"_a, "weight"_a, "gathered"_a, "source"_a.none(),
      "grad_output"_a, "reduce"_a, "targets"_a.none(), "root"_a.none(), "bias"_a.none(), "wanted"_a,
      "deterministic"_a, "tf32"_a,
      "Of edge weights, features, weight, targets, root, bias, those of the six that are wanted; "
      "or None.");
  define(module, "typed_linear_input_gradient", &input_gradient, "types"_a, "grad_output"_a,
         "weight"_a, "tf32"_a);
  define(module, "typed_linear_weight_gradient", &weight_gradient, "types"_a, "features"_a,
         "grad_output"_a, "deterministic"_a, "tf32"_a);
}

}   // namespace pumice::python
