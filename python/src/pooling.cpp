// Pooling over a map and over batch items, and its gradients.
#include <nanobind/stl/string.h>
#include <pumice/ops/global_pooling.hpp>
#include <pumice/ops/pooling.hpp>

#include "arguments.hpp"
#include "sites.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

nb::tuple pool_max(nb::handle features, const Map& map) {
  const Call call(features, home_of(map));
  const ConstTensorView x = call.matrix(features, "features");
  const KernelMapView view = map.view();
  FrameworkResults& results = call.results();
  const MaxPooled made =
      call.run([&] { return max_pool(x, view, {.output = results, .argmax = results}); });
  return nb::make_tuple(call.give(made.output), call.give(made.argmax));
}

nb::object pool_max_gradient(nb::handle grad_output, nb::handle argmax, const Map& map) {
  const Call call(grad_output, home_of(map));
  const ConstTensorView g = call.matrix(grad_output, "grad_output");
  const ConstTensorView from = call.view(argmax, "argmax");
  const KernelMapView view = map.view();
  return call.give(call.run([&] { return max_pool_gradient(g, from, view, call.results()); }));
}

/// `pool` is one of the four that take a matrix and a map.
template <class Pool>
nb::object pool_sums(nb::handle rows, const char* name, const Map& map, Pool&& pool) {
  const Call call(rows, home_of(map));
  const ConstTensorView x = call.matrix(rows, name);
  const KernelMapView view = map.view();
  return call.give(call.run([&] { return pool(x, view, call.results()); }));
}

nb::tuple global_max(nb::handle features, const Sites& sites) {
  const Call call(features, home_of(sites));
  const ConstTensorView x = call.matrix(features, "features");
  FrameworkResults& results = call.results();
  const GlobalMaxPooled made = call.run(
      [&] { return global_max_pool(x, *sites.set, {.output = results, .argmax = results}); });
  return nb::make_tuple(call.give(made.output), call.give(made.argmax));
}

nb::object global_max_gradient(nb::handle grad_output, nb::handle argmax, const Sites& sites) {
  const Call call(grad_output, home_of(sites));
  const ConstTensorView g = call.matrix(grad_output, "grad_output");
  const ConstTensorView from = call.view(argmax, "argmax");
  return call.give(
      call.run([&] { return global_max_pool_gradient(g, from, *sites.set, call.results()); }));
}

/// From rows to items, or back.
template <class Pool> nb::object global_sums(nb::handle rows, const Sites& sites, Pool&& pool) {
  const Call call(rows, home_of(sites));
  const ConstTensorView x = call.matrix(rows, "features");
  return call.give(call.run([&] { return pool(x, *sites.set, call.results()); }));
}

}   // namespace

void bind_pooling(nb::module_& module) {
  define(module, "max_pool", &pool_max, "features"_a, "map"_a, "(output, argmax)");
  define(module, "max_pool_gradient", &pool_max_gradient, "grad_output"_a, "argmax"_a, "map"_a);
  define(
      module, "sum_pool",
      [](nb::handle x, const Map& map) { return pool_sums(x, "features", map, &sum_pool); },
      "features"_a, "map"_a);
  define(
      module, "sum_pool_gradient",
      [](nb::handle g, const Map& map) {
        return pool_sums(g, "grad_output", map, &sum_pool_gradient);
      },
      "grad_output"_a, "map"_a);
  define(
      module, "average_pool",
      [](nb::handle x, const Map& map) { return pool_sums(x, "features", map, &average_pool); },
      "features"_a, "map"_a);
  define(
      module, "average_pool_gradient",
      [](nb::handle g, const Map& map) {
        return pool_sums(g, "grad_output", map, &average_pool_gradient);
      },
      "grad_output"_a, "map"_a);
  define(module, "global_max_pool", &global_max, "features"_a, "sites"_a, "(output, argmax)");
  define(module, "global_max_pool_gradient", &global_max_gradient, "grad_output"_a, "argmax"_a,
         "sites"_a);
  define(
      module, "global_sum_pool",
      [](nb::handle x, const Sites& sites) { return global_sums(x, sites, &global_sum_pool); },
      "features"_a, "sites"_a);
  define(
      module, "global_average_pool",
      [](nb::handle x, const Sites& sites) { return global_sums(x, sites, &global_average_pool); },
      "features"_a, "sites"_a);
  define(
      module, "global_average_pool_gradient",
      [](nb::handle g, const Sites& sites) {
        return global_sums(g, sites, &global_average_pool_gradient);
      },
      "grad_output"_a, "sites"_a);
  define(
      module, "broadcast",
      [](nb::handle items, const Sites& sites) { return global_sums(items, sites, &broadcast); },
      "items"_a, "sites"_a, "[batch_size, C] to [rows, C]; the gradient is global_sum_pool.");
}

}   // namespace pumice::python
