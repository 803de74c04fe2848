// Checks grids and arrays, lays them out and hands them to the back end.
#include <pumice/ops/dense.hpp>

#include <algorithm>
#include <limits>
#include <vector>

#include <pumice/core/copy.hpp>
#include <pumice/core/parallel.hpp>

#include "coords/cuda/device_set.hpp"
#include "coords/cuda/set_within.hpp"
#include "ops/checks.hpp"
#include "ops/cpu/dense.hpp"
#include "ops/cuda/occupied.hpp"
#include "ops/cuda/rows.hpp"
#include "ops/cuda/sources.hpp"

namespace pumice {
namespace {

void check_grid(const DenseGrid& grid, int dimension, const char* op) {
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(dimension); ++axis) {
    PUMICE_EXPECTS(grid.shape[axis] >= 0, op, ": grid.shape[", axis, "] = ", grid.shape[axis],
                   "; an extent cannot be negative");
  }
}

/// a · b, for strides and extents of a grid.
std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  PUMICE_EXPECTS(!__builtin_mul_overflow(a, b, &product),
                 "the dense grid has more than 2^63 elements; give a smaller one");
  return product;
}

/// [batch, channels, shape…] of the grid.
Shape dense_shape(std::int64_t batch, std::int64_t channels, const DenseGrid& grid, int dimension) {
  std::vector<std::int64_t> extents{batch, channels};
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(dimension); ++axis) {
    extents.push_back(grid.shape[axis]);
  }
  return Shape(extents);
}

/// Row-major strides of [B, C, shape…].
cpu::DenseLayout dense_layout(std::int64_t channels, const DenseGrid& grid, int dimension) {
  cpu::DenseLayout layout{.grid = grid};
  std::int64_t stride = 1;
  for (int axis = dimension - 1; axis >= 0; --axis) {
    layout.stride[static_cast<std::size_t>(axis)] = stride;
    stride = times(stride, grid.shape[static_cast<std::size_t>(axis)]);
  }
  layout.channel_stride = stride;
  layout.batch_stride = times(stride, channels);
  return layout;
}

/// [B, C · shape[axis], other axes…].
Shape bev_shape(std::int64_t batch, std::int64_t channels, const DenseGrid& grid, int dimension,
                int folded) {
  std::vector<std::int64_t> extents{batch,
                                    times(channels, grid.shape[static_cast<std::size_t>(folded)])};
  for (int axis = 0; axis < dimension; ++axis) {
    if (axis != folded) extents.push_back(grid.shape[static_cast<std::size_t>(axis)]);
  }
  return Shape(extents);
}

cpu::DenseLayout bev_layout(std::int64_t channels, const DenseGrid& grid, int dimension,
                            int folded) {
  cpu::DenseLayout layout{.grid = grid};
  const auto fold = static_cast<std::size_t>(folded);
  std::int64_t stride = 1;
  for (int axis = dimension - 1; axis >= 0; --axis) {
    if (axis == folded) continue;
    layout.stride[static_cast<std::size_t>(axis)] = stride;
    stride = times(stride, grid.shape[static_cast<std::size_t>(axis)]);
  }
  layout.stride[fold] = stride;
  layout.channel_stride = times(stride, grid.shape[fold]);
  layout.batch_stride = times(layout.channel_stride, channels);
  return layout;
}

std::string site_of(const CoordinateSet& set, std::int64_t row) {
  const auto* site = set.coordinates().data<std::int32_t>() + row * (set.dimension() + 1);
  std::string text = "(batch " + std::to_string(site[0]);
  for (int axis = 1; axis <= set.dimension(); ++axis)
    text += ", " + std::to_string(site[axis]);
  return text + ")";
}

cpu::DensePlaces places_in(const CoordinateSet& set, const cpu::DenseLayout& layout, bool crop,
                           const char* op) {
  cpu::DensePlaces places = cpu::places(set, layout);
  if (!crop && places.first_outside < set.size()) {
    std::string box;
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(set.dimension()); ++axis) {
      const std::int64_t low = layout.grid.low[axis];
      box += (axis == 0 ? "[" : " x [") + std::to_string(low) + ", " +
             std::to_string(low + layout.grid.shape[axis]) + ")";
    }
    detail::raise_user(op, ": row ", places.first_outside, " is at ",
                       site_of(set, places.first_outside), ", outside the grid ", box,
                       "; give a larger grid, or crop = true to leave such rows out");
  }
  return places;
}

std::int32_t extent_of(std::int32_t low, std::int32_t high, std::size_t axis) {
  const std::int64_t extent = std::int64_t{high} - low + 1;
  PUMICE_EXPECTS(extent <= std::numeric_limits<std::int32_t>::max(), "grid_of: axis ", axis,
                 " spans ", extent, " cells; give a grid of less than 2^31 and crop");
  return static_cast<std::int32_t>(extent);
}

DenseGrid grid_for(const CoordinateSet& set, const DenseOptions& options, const char* op) {
  const DenseGrid grid = options.grid ? *options.grid : grid_of(set);
  check_grid(grid, set.dimension(), op);
  return grid;
}

void check_features(ConstTensorView features, const CoordinateSet& set, const char* op,
                    const char* name) {
  checks::matrix(features, op, name);
  checks::same_device(features, set, op, name);
  checks::extent(features, 0, set.rows().capacity(), op, name, "the rows of the coordinate set");
}

void check_axis(int axis, int dimension, const char* op) {
  PUMICE_EXPECTS(dimension >= 2, op, ": a set of 1 axis has none to fold away; use to_dense");
  PUMICE_EXPECTS(axis >= 0 && axis < dimension, op, ": axis = ", axis, "; the set has axes 0 to ",
                 dimension - 1);
}

void check_array(ConstTensorView dense, const Shape& expected, const char* op, const char* name) {
  PUMICE_EXPECTS(is_floating(dense.dtype()), op, ": ", name, " holds ", name_of(dense.dtype()),
                 "; convert it to f64, f32, f16 or bf16");
  PUMICE_EXPECTS(dense.shape() == expected, op, ": ", name, " has shape ", to_string(dense.shape()),
                 "; for this set and grid it must be ", to_string(expected));
}

/// The layout as kernels read it.
DensePlacement placement_of(const cpu::DenseLayout& layout, int dimension) {
  DensePlacement placement{.batch_stride = layout.batch_stride,
                           .channel_stride = layout.channel_stride,
                           .dimension = dimension};
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(dimension); ++axis) {
    placement.stride[axis] = layout.stride[axis];
    placement.low[axis] = layout.grid.low[axis];
    placement.shape[axis] = layout.grid.shape[axis];
  }
  return placement;
}

Tensor place_rows(ConstTensorView features, const CoordinateSet& set,
                  const cpu::DenseLayout& layout, const Shape& shape, bool crop, const char* op,
                  const Place& place) {
  Tensor dense = place.make_zeros(shape, features.dtype(), features.stream());
  if (checks::on_cuda(features)) {
    jit::DeviceRunner runner = cuda::runner_for(features);
    cuda::place_rows(runner, set.rows().ref(), set.coordinates(),
                     placement_of(layout, set.dimension()), crop, op, features, dense.view());
    return dense;
  }
  const cpu::DensePlaces places = places_in(set, layout, crop, op);
  cpu::place_rows(features, places, layout.channel_stride, dense.view());
  return dense;
}

Tensor pick(ConstTensorView dense, const CoordinateSet& set, const cpu::DenseLayout& layout,
            std::int64_t channels, bool crop, const char* op, const Place& place) {
  Tensor features = place.make({set.rows().capacity(), channels}, dense.dtype(), dense.stream());
  if (checks::on_cuda(dense)) {
    jit::DeviceRunner runner = cuda::runner_for(dense);
    cuda::pick_rows(runner, set.rows().ref(), set.coordinates(),
                    placement_of(layout, set.dimension()), crop, op, dense, features.view());
    return features;
  }
  const cpu::DensePlaces places = places_in(set, layout, crop, op);
  cpu::pick_rows(dense, places, layout.channel_stride, features.view());
  return features;
}

constexpr std::int64_t kMostSites = std::numeric_limits<std::int32_t>::max();

void check_sites(std::int64_t sites) {
  PUMICE_EXPECTS(sites <= kMostSites, "from_dense: ", sites,
                 " cells are occupied; a set holds at most ", kMostSites, ", split the batch");
}

CoordinateSetPtr sites_on_host(ConstTensorView dense, const FromDenseOptions& options,
                               const DenseGrid& grid, int dimension) {
  const Buffer<std::int64_t> occupied = cpu::occupied_cells(dense, options.mask);
  check_sites(occupied.size());
  Tensor coordinates({occupied.size(), dimension + 1}, DType::i32);
  auto* const sites = coordinates.data<std::int32_t>();
  parallel_for(occupied.size(), 1 << 13, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      std::int64_t rest = occupied[row];
      for (int axis = dimension - 1; axis >= 0; --axis) {
        const auto a = static_cast<std::size_t>(axis);
        sites[row * (dimension + 1) + axis + 1] =
            static_cast<std::int32_t>(rest % grid.shape[a] + grid.low[a]);
        rest /= grid.shape[a];
      }
      sites[row * (dimension + 1)] = static_cast<std::int32_t>(rest);
    }
  });
  return CoordinateSet::create(
      coordinates,
      {.stride = options.stride, .batch_size = static_cast<std::int32_t>(dense.extent(0))});
}

/// Waits for the number of sites.
CoordinateSetPtr sites_on_device(ConstTensorView dense, const FromDenseOptions& options,
                                 const cpu::DenseLayout& layout, int dimension) {
  jit::DeviceRunner runner = cuda::runner_for(dense);
  cuda::OccupiedCells occupied(runner, dense, options.mask, placement_of(layout, dimension));
  const std::int64_t sites = cuda::wait_for_sites(occupied.count(), dense.stream(), "from_dense");
  check_sites(sites);
  Tensor coordinates({sites, dimension + 1}, DType::i32, dense.stream());
  if (sites > 0) occupied.write(runner, coordinates.view());
  CoordinateBounds bounds;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(dimension); ++axis) {
    bounds.low[axis] = layout.grid.low[axis];
    bounds.high[axis] = layout.grid.low[axis] + std::max(layout.grid.shape[axis], 1) - 1;
  }
  return cuda::set_within(
      std::move(coordinates), bounds,
      {.stride = options.stride, .batch_size = static_cast<std::int32_t>(dense.extent(0))});
}

}   // namespace

DenseGrid grid_of(const CoordinateSet& set) {
  DenseGrid grid;
  if (set.spatial_shape()) {
    grid.shape = *set.spatial_shape();
    return grid;
  }
  const auto dimension = static_cast<std::size_t>(set.dimension());
  if (set.device().kind == DeviceKind::cuda) {
    if (set.rows().capacity() == 0) return grid;
    PUMICE_ENSURES(set.options().bounds, "a set on a device without bounds");
    grid.low = set.options().bounds->low;
    for (std::size_t axis = 0; axis < dimension; ++axis)
      grid.shape[axis] = extent_of(grid.low[axis], set.options().bounds->high[axis], axis);
    return grid;
  }
  const auto* site = set.coordinates().data<std::int32_t>();
  if (set.size() == 0) return grid;
  Axes high{};
  for (std::size_t axis = 0; axis < dimension; ++axis)
    grid.low[axis] = high[axis] = site[axis + 1];
  for (std::int64_t row = 1; row < set.size(); ++row) {
    site += dimension + 1;
    for (std::size_t axis = 0; axis < dimension; ++axis) {
      grid.low[axis] = std::min(grid.low[axis], site[axis + 1]);
      high[axis] = std::max(high[axis], site[axis + 1]);
    }
  }
  for (std::size_t axis = 0; axis < dimension; ++axis)
    grid.shape[axis] = extent_of(grid.low[axis], high[axis], axis);
  return grid;
}

Tensor to_dense(ConstTensorView features, const CoordinateSet& set, const DenseOptions& options,
                const Place& place) {
  const char* op = "to_dense";
  check_features(features, set, op, "features");
  const DenseGrid grid = grid_for(set, options, op);
  const std::int64_t channels = features.extent(1);
  const Shape shape = dense_shape(set.batch_size(), channels, grid, set.dimension());
  return place_rows(features, set, dense_layout(channels, grid, set.dimension()), shape,
                    options.crop, op, place);
}

Tensor to_dense_gradient(ConstTensorView grad_dense, const CoordinateSet& set,
                         const DenseOptions& options, const Place& place) {
  const char* op = "to_dense_gradient";
  checks::same_device(grad_dense, set, op, "grad_dense");
  PUMICE_EXPECTS(grad_dense.rank() == set.dimension() + 2, op, ": grad_dense has shape ",
                 to_string(grad_dense.shape()), "; it must be [B, C, ", set.dimension(),
                 " spatial axes]");
  const DenseGrid grid = grid_for(set, options, op);
  const std::int64_t channels = grad_dense.extent(1);
  check_array(grad_dense, dense_shape(set.batch_size(), channels, grid, set.dimension()), op,
              "grad_dense");
  return pick(grad_dense, set, dense_layout(channels, grid, set.dimension()), channels,
              options.crop, op, place);
}

Tensor to_bev(ConstTensorView features, const CoordinateSet& set, int axis,
              const DenseOptions& options, const Place& place) {
  const char* op = "to_bev";
  check_features(features, set, op, "features");
  check_axis(axis, set.dimension(), op);
  const DenseGrid grid = grid_for(set, options, op);
  const std::int64_t channels = features.extent(1);
  return place_rows(features, set, bev_layout(channels, grid, set.dimension(), axis),
                    bev_shape(set.batch_size(), channels, grid, set.dimension(), axis),
                    options.crop, op, place);
}

Tensor to_bev_gradient(ConstTensorView grad_bev, const CoordinateSet& set, int axis,
                       const DenseOptions& options, const Place& place) {
  const char* op = "to_bev_gradient";
  checks::same_device(grad_bev, set, op, "grad_bev");
  check_axis(axis, set.dimension(), op);
  const DenseGrid grid = grid_for(set, options, op);
  const std::int64_t depth = grid.shape[static_cast<std::size_t>(axis)];
  PUMICE_EXPECTS(
      grad_bev.rank() == set.dimension() + 1 && depth > 0 && grad_bev.extent(1) % depth == 0, op,
      ": grad_bev has shape ", to_string(grad_bev.shape()), "; it must be [B, C · ", depth, ", ",
      set.dimension() - 1, " spatial axes]");
  const std::int64_t channels = grad_bev.extent(1) / depth;
  check_array(grad_bev, bev_shape(set.batch_size(), channels, grid, set.dimension(), axis), op,
              "grad_bev");
  return pick(grad_bev, set, bev_layout(channels, grid, set.dimension(), axis), channels,
              options.crop, op, place);
}

SparseRows from_dense(ConstTensorView dense, const FromDenseOptions& options, const Place& place) {
  const char* op = "from_dense";
  const int dimension = dense.rank() - 2;
  PUMICE_EXPECTS(dimension >= 1 && dimension <= kMaxDimension, op, ": dense has shape ",
                 to_string(dense.shape()), "; it must be [B, C, 1 to 4 spatial axes]");
  SparseRows result;
  result.grid.low = options.low;
  std::vector<std::int64_t> cells{dense.extent(0)};
  for (int axis = 0; axis < dimension; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    const std::int64_t extent = dense.extent(axis + 2);
    PUMICE_EXPECTS(extent <= kMostSites && options.low[a] + extent - 1 <= kMostSites, op, ": axis ",
                   axis, " reaches coordinate ", options.low[a] + extent - 1,
                   "; coordinates are int32, lower options.low");
    result.grid.shape[a] = static_cast<std::int32_t>(extent);
    cells.push_back(extent);
  }
  PUMICE_EXPECTS(dense.extent(0) <= kMostSites, op, ": ", dense.extent(0), " batch items; at most ",
                 kMostSites);
  check_array(dense, dense.shape(), op, "dense");
  if (options.mask.defined()) {
    PUMICE_EXPECTS(options.mask.dtype() == DType::u8 && options.mask.shape() == Shape(cells), op,
                   ": mask is ", name_of(options.mask.dtype()), ' ',
                   to_string(options.mask.shape()), "; it must be u8 ", to_string(Shape(cells)));
    checks::same_device(options.mask, dense, op, "mask", "dense");
  }
  const cpu::DenseLayout layout = dense_layout(dense.extent(1), result.grid, dimension);
  result.set = checks::on_cuda(dense) ? sites_on_device(dense, options, layout, dimension)
                                      : sites_on_host(dense, options, result.grid, dimension);
  result.features = pick(dense, *result.set, layout, dense.extent(1), false, op, place);
  return result;
}

Tensor from_dense_gradient(ConstTensorView grad_features, const CoordinateSet& set,
                           const DenseGrid& grid, const Place& place) {
  const char* op = "from_dense_gradient";
  check_features(grad_features, set, op, "grad_features");
  check_grid(grid, set.dimension(), op);
  const std::int64_t channels = grad_features.extent(1);
  return place_rows(grad_features, set, dense_layout(channels, grid, set.dimension()),
                    dense_shape(set.batch_size(), channels, grid, set.dimension()), false, op,
                    place);
}

}   // namespace pumice
