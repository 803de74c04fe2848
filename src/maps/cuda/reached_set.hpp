// The sites that a convolution makes for itself, on the device.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include <pumice/maps/cell_relation.h>

#include "coords/cuda/device_set.hpp"
#include "maps/cuda/device_window.hpp"

namespace pumice::cuda {

/// Cells an axis may have, both ends included.
struct CellRange {
  std::array<std::int64_t, kMaxDimension> low{};
  std::array<std::int64_t, kMaxDimension> high{};
};

/// What can be reached from cells in a range, and how it is numbered.
struct ReachedCells {
  KeyLayout layout{};
  CellRange range{};
};

/// Reach::in_to_out: from inputs to the outputs of a strided convolution. Reach::out_to_in: from
/// the coarse inputs of a transposed one to its outputs. With `shape`, cut to [0, shape); nothing
/// where that leaves no cell. UserError where coordinates would pass int32. Where they suffice,
/// keys are those of `from`, halved or doubled, so that a neighbour's key takes no decoding.
std::optional<ReachedCells> reached_cells(const KeyLayout& from, const CellRange& range,
                                          const KernelWindow& window, Reach reach,
                                          const std::optional<Axes>& shape,
                                          std::int64_t batch_size);

/// Every cell of `cells` that some offset leads to from some cell of `from`. A fill, a launch to
/// mark, those of a sort of block keys, and 3.
DeviceSet reached_set(jit::KernelRunner& runner, const CoordinateSetRef& from,
                      const DeviceWindow& window, Reach reach, const ReachedCells& cells,
                      SetCapacity capacity, const std::string& name);

}   // namespace pumice::cuda
