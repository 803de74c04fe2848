// Between rows and dense grids, and features at points between cells.
#include <optional>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>
#include <pumice/core/error.hpp>
#include <pumice/ops/dense.hpp>
#include <pumice/ops/interpolation.hpp>

#include "arguments.hpp"
#include "sites.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

using List = std::vector<std::int32_t>;

DenseGrid grid_from(const Sites& sites, const std::optional<List>& low,
                    const std::optional<List>& shape) {
  PUMICE_EXPECTS(shape || !low, "low is given without shape; give both, or neither");
  if (!shape) return grid_of(*sites.set);
  DenseGrid grid{.shape = axes_of(*shape, "spatial_shape")};
  if (low) grid.low = axes_of(*low, "low");
  for (auto axis = static_cast<std::size_t>(sites.set->dimension()); axis < grid.low.size(); ++axis)
    grid.low[axis] = grid.shape[axis] = 0;
  return grid;
}

nb::tuple grid_lists(const Sites& sites) {
  const Call call(sites.set->device(), home_of(sites));
  const DenseGrid grid = grid_of(*sites.set);
  const int dimension = sites.set->dimension();
  return nb::make_tuple(list_of(grid.low, dimension), list_of(grid.shape, dimension));
}

nb::object dense(nb::handle features, const Sites& sites, const std::optional<List>& low,
                 const std::optional<List>& shape, bool crop) {
  const Call call(features, home_of(sites));
  const ConstTensorView x = call.view(features, "features");
  PUMICE_EXPECTS(x.rank() == 2, "features have shape ", to_string(x.shape()),
                 ": give [rows, channels]");
  const DenseOptions options{.grid = grid_from(sites, low, shape), .crop = crop};
  return call.give(call.run([&] { return to_dense(x, *sites.set, options, call.results()); }));
}

nb::object dense_gradient(nb::handle grad_dense, const Sites& sites, const std::optional<List>& low,
                          const std::optional<List>& shape, bool crop) {
  const Call call(grad_dense, home_of(sites));
  const ConstTensorView g = call.view(grad_dense, "grad_dense");
  PUMICE_EXPECTS(g.rank() >= 2, "grad_dense has shape ", to_string(g.shape()));
  const DenseOptions options{.grid = grid_from(sites, low, shape), .crop = crop};
  return call.give(
      call.run([&] { return to_dense_gradient(g, *sites.set, options, call.results()); }));
}

nb::object bev(nb::handle features, const Sites& sites, int axis, const std::optional<List>& low,
               const std::optional<List>& shape, bool crop) {
  const Call call(features, home_of(sites));
  const ConstTensorView x = call.view(features, "features");
  PUMICE_EXPECTS(x.rank() == 2, "features have shape ", to_string(x.shape()),
                 ": give [rows, channels]");
  const DenseOptions options{.grid = grid_from(sites, low, shape), .crop = crop};
  return call.give(call.run([&] { return to_bev(x, *sites.set, axis, options, call.results()); }));
}

nb::object bev_gradient(nb::handle grad_bev, const Sites& sites, int axis,
                        const std::optional<List>& low, const std::optional<List>& shape,
                        bool crop) {
  const Call call(grad_bev, home_of(sites));
  const ConstTensorView g = call.view(grad_bev, "grad_bev");
  const DenseOptions options{.grid = grid_from(sites, low, shape), .crop = crop};
  return call.give(
      call.run([&] { return to_bev_gradient(g, *sites.set, axis, options, call.results()); }));
}

nb::tuple sparse(nb::handle values, nb::handle mask, const List& stride) {
  const Call call(values);
  const ConstTensorView view = call.view(values, "dense");
  FromDenseOptions options{.stride = axes_of(stride, "stride"), .mask = call.view(mask, "mask")};
  SparseRows made = call.run([&] { return from_dense(view, options, call.results()); });
  return nb::make_tuple(Sites{std::move(made.set), std::make_shared<Family>()},
                        call.give(made.features));
}

nb::tuple points_map(const Sites& sites, nb::handle points, bool nearest, bool renormalize) {
  const Call call(points, home_of(sites));
  const ConstTensorView where = call.view(points, "points");
  PUMICE_EXPECTS(where.rank() == 2, "points have shape ", to_string(where.shape()),
                 ": give [points, 1 + dimension], batch index first");
  const InterpolationOptions options{
      .mode = nearest ? Interpolation::nearest : Interpolation::linear, .renormalize = renormalize};
  FrameworkResults& results = call.results();
  const InterpolationMap made = call.run([&] {
    return interpolation_map(*sites.set, where, options, {.rows = results, .weights = results});
  });
  return nb::make_tuple(call.give(made.rows), call.give(made.weights));
}

/// `backward`: from points to rows.
nb::object interpolated(nb::handle matrix, nb::handle rows, nb::handle weights,
                        std::int64_t in_rows, bool backward) {
  const Call call(matrix);
  const ConstTensorView x = call.view(matrix, backward ? "grad_output" : "features");
  const ConstTensorView where = call.view(rows, "rows");
  const ConstTensorView shares = call.view(weights, "weights");
  PUMICE_EXPECTS(x.rank() == 2, "features have shape ", to_string(x.shape()),
                 ": give [rows, channels]");
  const InterpolationMapView map(where, shares, in_rows);
  return call.give(call.run([&] {
    return backward ? interpolate_gradient(x, map, call.results())
                    : interpolate(x, map, call.results());
  }));
}

}   // namespace

void bind_dense(nb::module_& module) {
  define(module, "grid_of", &grid_lists, "sites"_a, "(low, shape) of the box that holds all sites");
  define(module, "to_dense", &dense, "features"_a, "sites"_a, "low"_a.none(), "shape"_a.none(),
         "crop"_a, "[rows, C] to [batch_size, C, shape]");
  define(module, "to_dense_gradient", &dense_gradient, "grad_dense"_a, "sites"_a, "low"_a.none(),
         "shape"_a.none(), "crop"_a);
  define(module, "to_bev", &bev, "features"_a, "sites"_a, "axis"_a, "low"_a.none(),
         "shape"_a.none(), "crop"_a, "[rows, C] to [batch_size, C * shape[axis], other axes]");
  define(module, "to_bev_gradient", &bev_gradient, "grad_bev"_a, "sites"_a, "axis"_a,
         "low"_a.none(), "shape"_a.none(), "crop"_a);
  define(module, "from_dense", &sparse, "dense"_a, "mask"_a.none(), "stride"_a,
         "[B, C, shape] to (sites, features); on a device, waits for how many there are.");
  define(module, "interpolation_map", &points_map, "sites"_a, "points"_a, "nearest"_a,
         "renormalize"_a, "(int32 rows [P, corners], weights [P, corners])");
  define(
      module, "interpolate",
      [](nb::handle features, nb::handle rows, nb::handle weights, std::int64_t in_rows) {
        return interpolated(features, rows, weights, in_rows, false);
      },
      "features"_a, "rows"_a, "weights"_a, "in_rows"_a, "[in_rows, C] to [P, C]");
  define(
      module, "interpolate_gradient",
      [](nb::handle grad_output, nb::handle rows, nb::handle weights, std::int64_t in_rows) {
        return interpolated(grad_output, rows, weights, in_rows, true);
      },
      "grad_output"_a, "rows"_a, "weights"_a, "in_rows"_a, "[P, C] to [in_rows, C]");
}

}   // namespace pumice::python
