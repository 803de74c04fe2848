// Voxels of points on a device.
#pragma once

#include <vector>

#include <pumice/coords/voxel_sites.hpp>
#include <pumice/core/row_count.hpp>

#include "coords/cuda/coordinate_set.hpp"

namespace pumice::cuda {

/// Arguments are checked.
VoxelSites voxel_sites(ConstTensorView points, ConstTensorView batch,
                       const VoxelSiteOptions& options, const Place& row_of);

struct PlannedVoxels {
  std::vector<CoordinateSetPtr> sets;   // the voxels in key order, and their cells as planned
  Tensor row_of;   // i32 [points]: row of each point's voxel, -1 for one left out or not in use
};
/// Voxels of points of which `count` are in use, with the number of voxels known to the device
/// alone. `planned` says the batch size, the spatial shape and how many voxels there is room for;
/// with a range or a spatial shape its bounds have to hold all cells inside. A point that has no
/// cell, or one that the plan's keys do not reach, is reported, and poisons the sets. Only
/// enqueues. `also_zeroed` is zero when it is done.
PlannedVoxels planned_voxels(const ConstTensorView& points, const ConstTensorView& batch,
                             const RowCount& count, const VoxelSiteOptions& options,
                             const PlannedCoordinates& planned, const Place& row_of,
                             std::span<std::uint32_t> also_zeroed);

}   // namespace pumice::cuda
