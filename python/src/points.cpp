// Points into voxels: of NumPy, without any other framework, and of tensors where they are.
#include <filesystem>
#include <optional>
#include <string>

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <pumice/coords/voxel_sites.hpp>
#include <pumice/core/error.hpp>
#include <pumice/points/read.hpp>
#include <pumice/points/simulate.hpp>
#include <pumice/points/voxelize.hpp>

#include "arguments.hpp"
#include "sites.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

using Matrix = nb::ndarray<nb::numpy, const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

nb::object array_of(const Tensor& tensor) {
  if (!tensor.defined()) return nb::none();
  return share_with_numpy(tensor);
}

nb::dict voxelize_points(const Matrix& points, const Matrix& features,
                         const std::array<float, 3>& size,
                         const std::optional<std::array<float, 6>>& range,
                         const std::string& reduction) {
  const auto rows = static_cast<std::int64_t>(points.shape(0));
  PUMICE_EXPECTS(points.shape(1) == 3, "points have ", points.shape(1),
                 " columns: give x, y and z, and anything else as features");
  PointCloud cloud;
  cloud.positions =
      Tensor::from<float>({points.data(), static_cast<std::size_t>(rows) * 3}, {rows, 3});
  // The view is read only; a view of features owned by NumPy has no const-incorrect use.
  const ConstTensorView values(
      features.data(), DType::f32,
      {static_cast<std::int64_t>(features.shape(0)), static_cast<std::int64_t>(features.shape(1))});
  const VoxelOptions options{.size = size, .range = range, .reduction = parse_reduction(reduction)};
  const Voxels voxels = [&] {
    const GilReleased released;
    return voxelize(cloud, values, options);
  }();
  nb::dict result;
  result["coordinates"] = array_of(voxels.coordinates);
  result["features"] = array_of(voxels.features);
  result["point_to_voxel"] = array_of(voxels.point_to_voxel);
  return result;
}

using Box = std::optional<std::array<float, 6>>;

nb::tuple sites_of_points(nb::handle points, nb::handle batch, const std::array<float, 3>& size,
                          const Box& range, const std::optional<std::vector<std::int32_t>>& shape,
                          std::int32_t batch_size, const Box& bounds) {
  const Call call(points);
  const ConstTensorView where = call.view(points, "points");
  const ConstTensorView items = call.view(batch, "batch");
  VoxelSiteOptions options{
      .size = size, .range = range, .batch_size = batch_size, .bounds = bounds};
  if (shape) {
    PUMICE_EXPECTS(shape->size() == 3, "spatial_shape has ", shape->size(),
                   " numbers: give one each for x, y and z");
    options.spatial_shape = axes_of(*shape, "spatial_shape");
  }
  VoxelSites made = call.run([&] { return voxel_sites(where, items, options, call.results()); });
  return nb::make_tuple(Sites{std::move(made.set), std::make_shared<Family>()},
                        call.give(made.row_of));
}

nb::dict as_dict(const PointCloud& cloud) {
  nb::dict result;
  result["positions"] = array_of(cloud.positions);
  result["intensity"] = array_of(cloud.intensity);
  result["labels"] = array_of(cloud.labels);
  result["time"] = array_of(cloud.time);
  result["ring"] = array_of(cloud.ring);
  return result;
}

nb::dict read(const std::filesystem::path& path, const std::string& layout) {
  const PointCloud cloud = [&] {
    const GilReleased released;
    return read_points(path, {.layout = layout});
  }();
  return as_dict(cloud);
}

nb::dict simulate_scan(std::uint64_t seed, const std::string& sensor, int sweeps) {
  const SimulationOptions options{
      .seed = seed, .sensor = SensorModel::named(sensor), .sweeps = sweeps};
  const PointCloud cloud = [&] {
    const GilReleased released;
    return simulate(options);
  }();
  return as_dict(cloud);
}

}   // namespace

void bind_points(nb::module_& module) {
  define(module, "voxelize", &voxelize_points, "points"_a, "features"_a, "size"_a, "range"_a.none(),
         "reduction"_a);
  define(module, "voxel_sites", &sites_of_points, "points"_a, "batch"_a.none(), "size"_a,
         "range"_a.none(), "spatial_shape"_a.none(), "batch_size"_a, "bounds"_a.none(),
         "(sites, int32 row of each point, -1 left out); on a device, waits for how many.");
  define(module, "read_points", &read, "path"_a, "layout"_a);
  define(
      module, "read_labels",
      [](const std::filesystem::path& path) { return array_of(read_labels(path)); }, "path"_a);
  define(module, "simulate", &simulate_scan, "seed"_a, "sensor"_a, "sweeps"_a);
}

}   // namespace pumice::python
