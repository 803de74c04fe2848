// New coordinate sets out of old ones, on the device. Rows come in key order but where a set is
// pruned or reordered.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <pumice/coords/key_box.h>
#include <pumice/coords/coordinate_set.hpp>

#include "coords/cuda/device_set.hpp"
#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// How the cells of a coarser set are numbered.
struct CoarseCells {
  KeyLayout layout{};
  /// Keys of the finer set shifted by as many bits are keys of `layout`; elsewhere they are made
  /// anew, which takes a sort.
  std::optional<int> shift{};
};

/// The cells of `factor` fine cells an axis, where the fine ones lie in [low, high].
CoarseCells coarse_cells(const KeyLayout& fine, std::span<const std::int64_t> low,
                         std::span<const std::int64_t> high, std::int64_t batch_size,
                         const Axes& factor);

/// One site for every occupied cell of `factor` cells an axis; with `box` those alone that lie in
/// it. 3 launches by a shift, 4 and those of a sort without, 1 more with a box.
DeviceSet coarsen_set(jit::KernelRunner& runner, const CoordinateSetRef& set, const Axes& factor,
                      const CoarseCells& cells, const KeyBox& box, SetCapacity capacity,
                      const std::string& name);

struct DeviceUnion {
  DeviceSet set;
  Buffer<std::int32_t> row_of;    // [capacity of left + capacity of right] rows in `set`
  std::int64_t right_begin = 0;   // where those of right begin
};
/// Sites of either, in a layout that holds both.
DeviceUnion unite_sets(jit::KernelRunner& runner, const CoordinateSetRef& left,
                       const CoordinateSetRef& right, const KeyLayout& layout, SetCapacity capacity,
                       const std::string& name);

struct DevicePruned {
  DeviceSet set;               // kept rows, in their old order
  Buffer<std::int32_t> kept;   // [rows of set]: row in the old set
};
/// Keeps the rows where `keep`, u8 [rows], is not zero.
DevicePruned prune_set(jit::KernelRunner& runner, const CoordinateSetRef& set,
                       const std::uint8_t* keep, SetCapacity capacity, const std::string& name);

/// The sites of a set in key order, that of rank r in row `row[r]`. A fill and three launches;
/// what is no row is reported.
DeviceSet reorder_set(jit::KernelRunner& runner, const CoordinateSetRef& set,
                      const std::int32_t* row, SetCapacity capacity, const std::string& name);

/// int64 [batch_size + 1]: ranks before each batch item. One launch.
Buffer<std::int64_t> batch_ranges(jit::KernelRunner& runner, const CoordinateSetRef& set,
                                  std::int64_t batch_size);

}   // namespace pumice::cuda
