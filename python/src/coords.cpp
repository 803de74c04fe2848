// Coordinate sets, and sets out of sets.
#include <algorithm>
#include <optional>
#include <string>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <pumice/coords/set_operations.hpp>
#include <pumice/coords/unique.hpp>
#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>

#include "arguments.hpp"
#include "sites.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

using List = std::vector<std::int32_t>;

CoordinateOptions options_of(const std::optional<List>& stride, const std::optional<List>& shape,
                             std::optional<std::int32_t> batch_size, const std::optional<List>& low,
                             const std::optional<List>& high) {
  CoordinateOptions options;
  if (stride) options.stride = axes_of(*stride, "stride");
  if (shape) options.spatial_shape = axes_of(*shape, "spatial_shape");
  options.batch_size = batch_size;
  if (low && high) options.bounds = {axes_of(*low, "low"), axes_of(*high, "high")};
  return options;
}

Sites create(nb::handle coordinates, const std::optional<List>& stride,
             const std::optional<List>& shape, std::optional<std::int32_t> batch_size,
             const std::optional<List>& low, const std::optional<List>& high) {
  const Call call(coordinates);
  const ConstTensorView cells = call.view(coordinates, "coords");
  const CoordinateOptions options = options_of(stride, shape, batch_size, low, high);
  return {call.run([&] { return CoordinateSet::create(cells, options); }),
          std::make_shared<Family>()};
}

nb::tuple unique(nb::handle coordinates, const std::optional<List>& stride,
                 const std::optional<List>& shape, std::optional<std::int32_t> batch_size,
                 const std::optional<List>& low, const std::optional<List>& high) {
  const Call call(coordinates);
  const ConstTensorView cells = call.view(coordinates, "coords");
  const CoordinateOptions options = options_of(stride, shape, batch_size, low, high);
  UniqueCoordinates made = call.run([&] { return unique_coordinates(cells, options); });
  return nb::make_tuple(Sites{std::move(made.set), std::make_shared<Family>()},
                        call.give(made.row_of), call.give(made.first));
}

nb::tuple unite_sets(const Sites& left, const Sites& right) {
  const Call call(left.set->device(), home_of(left));
  UnionSet made = call.run([&] { return unite(*left.set, *right.set); });
  return nb::make_tuple(Sites{std::move(made.set), std::make_shared<Family>()},
                        share(made.left_row), share(made.right_row));
}

nb::tuple prune(const Sites& sites, nb::handle keep) {
  const Call call(keep, home_of(sites));
  const ConstTensorView mask = call.view(keep, "keep");
  PrunedSet made = call.run([&] { return prune_set(*sites.set, mask); });
  return nb::make_tuple(Sites{std::move(made.set), std::make_shared<Family>()}, share(made.kept));
}

/// In the family of the old ones, which their maps lead to and from.
Sites reorder_rows(const Sites& sites, nb::handle row) {
  const Call call(row, home_of(sites));
  const ConstTensorView rows = call.view(row, "row");
  return {call.run([&] { return reorder(*sites.set, rows); }), sites.family};
}

/// (low, high) of what the host knows that all sites keep.
nb::object bounds_of(const Sites& sites) {
  const std::optional<CoordinateBounds>& bounds = sites.set->options().bounds;
  if (!bounds) return nb::none();
  const int dimension = sites.set->dimension();
  return nb::make_tuple(list_of(bounds->low, dimension), list_of(bounds->high, dimension));
}

/// A copy: who writes into it changes no set. Made like another tensor it takes the host less time
/// than memory of the extension that is exported.
nb::object coordinates_of(const Sites& sites, nb::handle like) {
  const ConstTensorView coordinates = sites.set->coordinates();
  if (like.is_none()) {
    const Call call(sites.set->device(), home_of(sites));
    return share(pumice::copy_to(home_of(sites), coordinates));
  }
  const Call call(like, home_of(sites));
  Tensor copy = call.results().make(coordinates.shape(), coordinates.dtype(), call.stream());
  copy_async(copy.view(), coordinates, call.stream());
  return call.give(copy);
}

/// From one GPU to another by the host.
Sites copy_to(const Sites& sites, const std::string& device) {
  const Device target = parse_device(device);
  CoordinateSetPtr set = sites.set;
  if (set->device() != target && set->device().kind == DeviceKind::cuda) {
    const Call call(set->device(), home_of(sites));
    set = CoordinateSet::copy_to(set, {});
  }
  const Call call(target);
  return {CoordinateSet::copy_to(set, call.stream()), std::make_shared<Family>()};
}

}   // namespace

Axes axes_of(const std::vector<std::int32_t>& values, const char* name) {
  PUMICE_EXPECTS(!values.empty() && values.size() <= static_cast<std::size_t>(kMaxDimension), name,
                 " has ", values.size(), " numbers: give one an axis, for 1 to ", kMaxDimension,
                 " axes");
  Axes result = axes(kMaxDimension, 1);
  std::copy(values.begin(), values.end(), result.begin());
  return result;
}

std::vector<std::int32_t> list_of(const Axes& values, int dimension) {
  return {values.begin(), values.begin() + dimension};
}

void bind_coords(nb::module_& module) {
  nb::class_<Sites>(module, "Sites", "Distinct coordinates, and the maps made from them.")
      .def_prop_ro("rows", &Sites::rows)
      .def_prop_ro(
          "host_knows", [](const Sites& sites) { return sites.set->rows().host_knows(); },
          "Whether `rows` are in use, or else are the room of a set that a device counts.")
      .def_prop_ro("dimension", [](const Sites& sites) { return sites.set->dimension(); })
      .def_prop_ro("batch_size", [](const Sites& sites) { return sites.set->batch_size(); })
      .def_prop_ro("device", [](const Sites& sites) { return to_string(sites.set->device()); })
      .def_prop_ro(
          "stride",
          [](const Sites& sites) { return list_of(sites.set->stride(), sites.set->dimension()); })
      .def_prop_ro("spatial_shape",
                   [](const Sites& sites) -> std::optional<List> {
                     if (!sites.set->spatial_shape()) return std::nullopt;
                     return list_of(*sites.set->spatial_shape(), sites.set->dimension());
                   })
      .def_prop_ro(
          "bounds", &bounds_of,
          "(low, high) that all sites keep, where the host knows them: always on a device.")
      .def("coordinates", &coordinates_of, "like"_a.none() = nb::none(),
           "A copy: int32 [rows, 1 + dimension], batch first, in memory as that of `like` where "
           "that is given.")
      .def(
          "is_same", [](const Sites& a, const Sites& b) { return a.set == b.set; }, "other"_a)
      .def("copy_to", &copy_to, "device"_a)
      .def("prune", &prune, "keep"_a, "(sites, int32 row of each that is kept)")
      .def("reorder", &reorder_rows, "row"_a,
           "The same sites, which are in key order here, in rows int32 [rows].")
      .def("unite", &unite_sets, "other"_a, "(sites, int32 row of each of mine, of each other)");
  define(module, "create_sites", &create, "coordinates"_a, "stride"_a.none(),
         "spatial_shape"_a.none(), "batch_size"_a.none(), "low"_a.none(), "high"_a.none(),
         "int32 [rows, 1 + dimension], batch first, from low to high where those are given.");
  define(module, "unique_sites", &unique, "coordinates"_a, "stride"_a.none(),
         "spatial_shape"_a.none(), "batch_size"_a.none(), "low"_a.none(), "high"_a.none(),
         "(sites, int32 row of each coordinate, int32 first coordinate of each row)");
}

}   // namespace pumice::python
