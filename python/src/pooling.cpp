// Pooling over a map and over batch items, and its gradients.
#include <nanobind/stl/string.h>
#include <pumice/core/error.hpp>
#include <pumice/ops/global_pooling.hpp>
#include <pumice/ops/pooling.hpp>

#include "arguments.hpp"
#include "sites.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

std::int64_t columns(const ConstTensorView& view, const char* name) {
  PUMICE_EXPECTS(view.rank() == 2, name, " has shape ", to_string(view.shape()),
                 ": give [rows, channels]");
  return view.extent(1);
}

nb::tuple pool_max(nb::handle features, const Map& map) {
  Call call(features, home_of(map));
  const ConstTensorView x = call.view(features, "features");
  const KernelMapView view = map.view();
  const Shape shape{view.out_rows, columns(x, "features")};
  call.expect(shape, x.dtype());
  call.expect(shape, DType::i32);
  MaxPooled made = call.run([&] { return max_pool(x, view); });
  return nb::make_tuple(call.give(std::move(made.output)), call.give(std::move(made.argmax)));
}

nb::object pool_max_gradient(nb::handle grad_output, nb::handle argmax, const Map& map) {
  Call call(grad_output, home_of(map));
  const ConstTensorView g = call.view(grad_output, "grad_output");
  const ConstTensorView from = call.view(argmax, "argmax");
  const KernelMapView view = map.view();
  call.expect({view.in_rows, columns(g, "grad_output")}, g.dtype());
  return call.give(call.run([&] { return max_pool_gradient(g, from, view); }));
}

/// `pool` is one of the four that take a matrix and a map.
template <class Pool>
nb::object pool_sums(nb::handle matrix, const Map& map, bool backward, Pool&& pool) {
  Call call(matrix, home_of(map));
  const ConstTensorView x = call.view(matrix, backward ? "grad_output" : "features");
  const KernelMapView view = map.view();
  call.expect({backward ? view.in_rows : view.out_rows, columns(x, "features")}, x.dtype());
  return call.give(call.run([&] { return pool(x, view); }));
}

nb::tuple global_max(nb::handle features, const Sites& sites) {
  Call call(features, home_of(sites));
  const ConstTensorView x = call.view(features, "features");
  const Shape shape{sites.set->batch_size(), columns(x, "features")};
  call.expect(shape, x.dtype());
  call.expect(shape, DType::i32);
  GlobalMaxPooled made = call.run([&] { return global_max_pool(x, *sites.set); });
  return nb::make_tuple(call.give(std::move(made.output)), call.give(std::move(made.argmax)));
}

nb::object global_max_gradient(nb::handle grad_output, nb::handle argmax, const Sites& sites) {
  Call call(grad_output, home_of(sites));
  const ConstTensorView g = call.view(grad_output, "grad_output");
  const ConstTensorView from = call.view(argmax, "argmax");
  call.expect({sites.rows(), columns(g, "grad_output")}, g.dtype());
  return call.give(call.run([&] { return global_max_pool_gradient(g, from, *sites.set); }));
}

/// From rows to items, or back.
template <class Pool>
nb::object global_sums(nb::handle matrix, const Sites& sites, bool to_rows, Pool&& pool) {
  Call call(matrix, home_of(sites));
  const ConstTensorView x = call.view(matrix, "features");
  call.expect({to_rows ? sites.rows() : sites.set->batch_size(), columns(x, "features")},
              x.dtype());
  return call.give(call.run([&] { return pool(x, *sites.set); }));
}

}   // namespace

void bind_pooling(nb::module_& module) {
  define(module, "max_pool", &pool_max, "features"_a, "map"_a, "(output, argmax)");
  define(module, "max_pool_gradient", &pool_max_gradient, "grad_output"_a, "argmax"_a, "map"_a);
  define(
      module, "sum_pool",
      [](nb::handle x, const Map& map) { return pool_sums(x, map, false, &sum_pool); },
      "features"_a, "map"_a);
  define(
      module, "sum_pool_gradient",
      [](nb::handle g, const Map& map) { return pool_sums(g, map, true, &sum_pool_gradient); },
      "grad_output"_a, "map"_a);
  define(
      module, "average_pool",
      [](nb::handle x, const Map& map) { return pool_sums(x, map, false, &average_pool); },
      "features"_a, "map"_a);
  define(
      module, "average_pool_gradient",
      [](nb::handle g, const Map& map) { return pool_sums(g, map, true, &average_pool_gradient); },
      "grad_output"_a, "map"_a);
  define(module, "global_max_pool", &global_max, "features"_a, "sites"_a, "(output, argmax)");
  define(module, "global_max_pool_gradient", &global_max_gradient, "grad_output"_a, "argmax"_a,
         "sites"_a);
  define(
      module, "global_sum_pool",
      [](nb::handle x, const Sites& sites) {
        return global_sums(x, sites, false, &global_sum_pool);
      },
      "features"_a, "sites"_a);
  define(
      module, "global_average_pool",
      [](nb::handle x, const Sites& sites) {
        return global_sums(x, sites, false, &global_average_pool);
      },
      "features"_a, "sites"_a);
  define(
      module, "global_average_pool_gradient",
      [](nb::handle g, const Sites& sites) {
        return global_sums(g, sites, true, &global_average_pool_gradient);
      },
      "grad_output"_a, "sites"_a);
  define(
      module, "broadcast",
      [](nb::handle items, const Sites& sites) {
        return global_sums(items, sites, true, &broadcast);
      },
      "items"_a, "sites"_a, "[batch_size, C] to [rows, C]; the gradient is global_sum_pool.");
}

}   // namespace pumice::python
