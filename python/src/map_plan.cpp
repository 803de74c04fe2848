// Plans of sets and maps: learned from the maps of a family, which they make again for other scans.
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>
#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/formats/map_plan.hpp>
#include <pumice/plan/plan_book.hpp>

#include "arguments.hpp"
#include "held_tensor.hpp"
#include "sites.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

using List = std::vector<std::int32_t>;

MapPlan learn(const Sites& sites, std::int64_t rows, const List& low, const List& high,
              double margin, const MapPlan* earlier, std::int64_t points) {
  const Call call(sites.set->device(), home_of(sites));
  const PlanRoom room{.rows = rows,
                      .bounds = {axes_of(low, "low"), axes_of(high, "high")},
                      .margin = margin,
                      .points = points};
  return sites.family->locked(
      true, [&](MapCache& maps) { return MapPlan(maps, sites.set, room, earlier); });
}

/// A tensor of the framework as one that keeps it alive.
Tensor held(const Call& call, nb::handle tensor, const char* name) {
  const ConstTensorView view = view_of(tensor, name, call.stream());
  return hold(nb::borrow(tensor), view.shape(), view.dtype(), call.stream());
}

/// A count within `rows` that the device knows: a tensor of one int64.
RowCount count_in(const Call& call, nb::handle count, std::int64_t rows) {
  auto word = std::make_shared<Tensor>(held(call, count, "count"));
  PUMICE_EXPECTS(word->dtype() == DType::i64 && word->elements() == 1,
                 "a plan takes one int64 count, not ", name_of(word->dtype()), ' ',
                 to_string(word->shape()));
  auto* const data = static_cast<std::int64_t*>(word->raw());
  const Device device = word->device();
  return RowCount::on_device(std::shared_ptr<std::int64_t>(std::move(word), data), rows, device);
}

Sites sites_of(MapPlan::Made made) {
  return {std::move(made.input), std::make_shared<Family>(std::move(made.maps))};
}

Sites make(const MapPlan& plan, nb::handle coordinates, nb::handle count) {
  const Call call(coordinates);
  const Tensor cells = held(call, coordinates, "coordinates");
  PUMICE_EXPECTS(cells.dtype() == DType::i32, "a plan takes int32 coordinates, not ",
                 name_of(cells.dtype()), ' ', to_string(cells.shape()));
  const RowCount rows = count_in(call, count, cells.rows());
  return sites_of(call.run([&] { return plan.make(cells, rows); }));
}

nb::tuple make_of_points(const MapPlan& plan, nb::handle points, nb::handle batch, nb::handle count,
                         const std::array<float, 3>& size,
                         const std::optional<std::array<float, 6>>& range) {
  const Call call(points);
  const ConstTensorView where = call.view(points, "points");
  const ConstTensorView items = call.view(batch, "batch");
  const RowCount rows = count_in(call, count, where.rows());
  const VoxelSiteOptions options{.size = size, .range = range};
  MapPlan::Made made =
      call.run([&] { return plan.make(where, items, rows, options, call.results()); });
  nb::object row_of = call.give(made.row_of);
  return nb::make_tuple(sites_of(std::move(made)), std::move(row_of));
}

/// Without waiting: on a device the number is there when the stream has come to it.
void copy_row_count(const Sites& sites, nb::handle to) {
  const Call call(to, home_of(sites));
  const TensorView word = single_view_of(to, "to", call.stream());
  PUMICE_EXPECTS(word.dtype() == DType::i64, "to is ", name_of(word.dtype()), ": give int64");
  const RowCount& rows = sites.set->rows();
  auto* const data = static_cast<std::int64_t*>(word.raw());
  if (rows.host_knows()) {
    const std::int64_t number = rows.host();
    copy_async(data, word.device(), &number, Device{}, sizeof(number), call.stream());
  } else {
    copy_async(data, word.device(), rows.word(), sites.set->device(), sizeof(*data), call.stream());
  }
}

void copy_trouble(nb::handle to) {
  const Call call(to);
  const TensorView word = single_view_of(to, "to", call.stream());
  PUMICE_EXPECTS(word.dtype() == DType::i32, "to is ", name_of(word.dtype()), ": give int32");
  pumice::copy_trouble(call.stream(), word.data<std::int32_t>());
}

}   // namespace

void bind_map_plan(nb::module_& module) {
  nb::class_<MapPlan>(module, "MapPlan", "Sets and maps that can be made again without waiting.")
      .def("make", &make, "coordinates"_a, "count"_a,
           "Sites of int32 [rows, 1 + D] with their maps; `count`, int64 [1], says how many rows "
           "are in use. Both are read when the device comes to it, and are kept.")
      .def(
          "make_of_points", &make_of_points, "points"_a, "batch"_a.none(), "count"_a, "size"_a,
          "range"_a.none(),
          "(voxels with their maps, int32 row of each point, -1 left out) of float32 [points, 3 or "
          "more] and int32 items [points]; `count`, int64 [1], says how many points are in use. "
          "Size and range as `voxel_sites` takes them. All are read when the device comes to it.")
      .def_prop_ro("capacities", &MapPlan::capacities, "The room of each set, the input first.");
  define(
      module, "learn_map_plan", &learn, "sites"_a, "rows"_a, "low"_a, "high"_a, "margin"_a,
      "earlier"_a.none(), "points"_a,
      "A plan of all maps that were asked of `sites` and what follows from them, with room for "
      "`rows` sites from low to high, and for `margin` times as much, in proportion, of what "
      "follows; no less than an `earlier` plan of the same sites and maps has. `points`: how many "
      "points the sites are made of there is room for, a number that no sites get. Waits.");
  define(module, "copy_row_count", &copy_row_count, "sites"_a, "to"_a,
         "Writes the number of rows that are in use to int64 [1], without waiting.");
  define(module, "copy_trouble", &copy_trouble, "to"_a,
         "Writes to int32 [1], without waiting, what has_trouble says once the current stream has "
         "come to it: not 0 where something went wrong.");
  define(module, "plans_in_use", &plans_in_use,
         "A number that changes whenever other plans may be chosen.");
}

}   // namespace pumice::python
