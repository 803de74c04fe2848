// Rows taken, and rows merged: from voxels to points and back.
#include <string>

#include <nanobind/stl/string.h>
#include <pumice/core/error.hpp>
#include <pumice/ops/rows.hpp>

#include "arguments.hpp"
#include "sites.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

nb::object take(nb::handle features, nb::handle rows) {
  const Call call(features);
  const ConstTensorView x = call.matrix(features, "features");
  const ConstTensorView from = call.view(rows, "rows");
  return call.give(call.run([&] { return take_rows(x, from, call.results()); }));
}

nb::object scatter(nb::handle grad_output, nb::handle rows, std::int64_t in_rows) {
  const Call call(grad_output);
  const ConstTensorView g = call.matrix(grad_output, "grad_output");
  const ConstTensorView from = call.view(rows, "rows");
  return call.give(call.run([&] { return scatter_rows(g, from, in_rows, call.results()); }));
}

nb::tuple reduce(nb::handle features, nb::handle row_of, std::int64_t out_rows,
                 const std::string& reduction) {
  const Call call(features);
  const ConstTensorView x = call.matrix(features, "features");
  const ConstTensorView to = call.view(row_of, "row_of");
  const Reduction kind = parse_reduction(reduction);
  PUMICE_EXPECTS(out_rows >= 0, "rows = ", out_rows, ": give 0 or more");
  FrameworkResults& results = call.results();
  const ReducedRows made = call.run(
      [&] { return reduce_rows(x, to, out_rows, kind, {.output = results, .source = results}); });
  return nb::make_tuple(call.give(made.output),
                        made.source.defined() ? call.give(made.source) : nb::none());
}

nb::object reduce_gradient(nb::handle grad_output, nb::handle row_of, nb::handle source,
                           const std::string& reduction) {
  const Call call(grad_output);
  const ConstTensorView g = call.matrix(grad_output, "grad_output");
  const ConstTensorView to = call.view(row_of, "row_of");
  const ConstTensorView from = call.view(source, "source");
  const Reduction kind = parse_reduction(reduction);
  return call.give(
      call.run([&] { return reduce_rows_gradient(g, to, from, kind, call.results()); }));
}

}   // namespace

void bind_rows(nb::module_& module) {
  define(module, "take_rows", &take, "features"_a, "rows"_a,
         "[N, C] and int32 or int64 [M] to [M, C]; -1 gives zeros.");
  define(module, "scatter_rows", &scatter, "grad_output"_a, "rows"_a, "in_rows"_a,
         "The gradient of take_rows: [M, C] to [in_rows, C], sums.");
  define(module, "reduce_rows", &reduce, "features"_a, "row_of"_a, "rows"_a, "reduction"_a,
         "([out_rows, C], what the gradient needs or None): rows [P, C] merged by row_of [P], "
         "-1 leaves one out.");
  define(module, "reduce_rows_gradient", &reduce_gradient, "grad_output"_a, "row_of"_a,
         "source"_a.none(), "reduction"_a);
}

}   // namespace pumice::python
