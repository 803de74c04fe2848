// Rows that are grouped by type, and their linear layers.
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/string.h>
#include <pumice/core/error.hpp>
#include <pumice/ops/typed_linear.hpp>

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
  define(module, "typed_linear_input_gradient", &input_gradient, "types"_a, "grad_output"_a,
         "weight"_a, "tf32"_a);
  define(module, "typed_linear_weight_gradient", &weight_gradient, "types"_a, "features"_a,
         "grad_output"_a, "deterministic"_a, "tf32"_a);
}

}   // namespace pumice::python
