// Bounds and room of the sets that convolutions make.
#include "maps/cuda/strided_set.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include <pumice/shared/floor_division.h>

#include "coords/cuda/coordinate_set.hpp"
#include "coords/cuda/set_operations.hpp"
#include "maps/cuda/reached_set.hpp"

namespace pumice::cuda {
namespace {

CellRange range_of(const CoordinateSet& set) {
  PUMICE_ENSURES(set.options().bounds.has_value(), "a set on a device without bounds");
  CellRange range;
  for (std::size_t axis = 0; axis < kMaxDimension; ++axis) {
    range.low[axis] = set.options().bounds->low[axis];
    range.high[axis] = set.options().bounds->high[axis];
  }
  return range;
}

CoordinateBounds bounds_of(const CellRange& range) {
  CoordinateBounds bounds;
  for (std::size_t axis = 0; axis < kMaxDimension; ++axis) {
    bounds.low[axis] = static_cast<std::int32_t>(range.low[axis]);
    bounds.high[axis] = static_cast<std::int32_t>(range.high[axis]);
  }
  return bounds;
}

Room room_of(const PlannedSet* planned) {
  return planned == nullptr ? std::nullopt : Room(planned->room);
}

jit::DeviceRunner runner_for(const CoordinateSet& from, const PlannedSet* planned) {
  return {from.stream(), default_allocator(from.device()),
          planned == nullptr ? nullptr : planned->status};
}

CoordinateSetPtr reach_cells(const CoordinateSetPtr& from, const KernelWindow& window, Reach reach,
                             const CoordinateOptions& options, const PlannedSet* planned) {
  jit::DeviceRunner runner = runner_for(*from, planned);
  const std::int64_t rows = from->rows().capacity();
  const auto cells = reached_cells(from->layout(), range_of(*from), window, reach,
                                   options.spatial_shape, from->batch_size());
  if (!cells || rows == 0) return empty_set(runner, *from, options);
  const Room room = room_of(planned);
  const auto kept = planned == nullptr ? DeviceWindow::on(from->stream(), window) : nullptr;
  const DeviceWindow& on_device = planned != nullptr ? *planned->window : *kept;
  DeviceSet made = reached_set(runner, ref_of(*from), on_device, reach, *cells,
                               room.value_or(capacity_for_rows(rows * most_reached(window, reach))),
                               "reached cells");
  return finish_set(runner, std::move(made), *from, options, bounds_of(cells->range), room);
}

}   // namespace

// On each axis the offsets whose steps, of a dilation each, are whole strides apart. With dilation
// 3 and stride 3 that is every offset.
std::int64_t most_reached(const KernelWindow& window, Reach reach) {
  if (reach == Reach::out_to_in || window.shape != KernelShape::hypercube) return window.volume();
  std::int64_t most = 1;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(window.dimension); ++axis) {
    const std::int32_t apart =
        window.stride[axis] / std::gcd(window.stride[axis], window.dilation[axis]);
    most *= (window.size[axis] + apart - 1) / apart;
  }
  return std::min(most, window.volume());
}

CoordinateSetPtr strided_set(const CoordinateSetPtr& in, const KernelWindow& window, bool by_cell,
                             const CoordinateOptions& options, const PlannedSet* planned) {
  if (!by_cell) return reach_cells(in, window, Reach::in_to_out, options, planned);
  jit::DeviceRunner runner = runner_for(*in, planned);
  if (in->rows().capacity() == 0) return empty_set(runner, *in, options);
  CellRange range = range_of(*in);
  const auto dimension = static_cast<std::size_t>(window.dimension);
  const CoarseCells cells =
      coarse_cells(in->layout(), std::span(range.low).first(dimension),
                   std::span(range.high).first(dimension), in->batch_size(), window.stride);
  KeyBox box;
  for (std::size_t axis = 0; axis < dimension; ++axis) {
    range.low[axis] = floor_divide(range.low[axis], window.stride[axis]);
    range.high[axis] = floor_divide(range.high[axis], window.stride[axis]);
  }
  if (options.spatial_shape) {
    const std::array<std::int64_t, kMaxDimension> first{};
    std::array<std::int64_t, kMaxDimension> last{};
    for (std::size_t axis = 0; axis < dimension; ++axis)
      last[axis] = std::int64_t{(*options.spatial_shape)[axis]} - 1;
    box = make_box(cells.layout, first.data(), last.data());
  }
  const Room room = room_of(planned);
  DeviceSet made =
      coarsen_set(runner, ref_of(*in), window.stride, cells, box,
                  room.value_or(capacity_for_rows(in->rows().capacity())), "strided set");
  return finish_set(runner, std::move(made), *in, options, bounds_of(range), room);
}

CoordinateSetPtr generated_set(const CoordinateSetPtr& coarse, const KernelWindow& window,
                               const CoordinateOptions& options, const PlannedSet* planned) {
  return reach_cells(coarse, window, Reach::out_to_in, options, planned);
}

}   // namespace pumice::cuda
