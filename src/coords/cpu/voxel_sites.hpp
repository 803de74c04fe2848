// Voxels of points on the host.
#pragma once

#include <pumice/coords/voxel_sites.hpp>

namespace pumice::cpu {

/// Arguments are checked.
VoxelSites voxel_sites(ConstTensorView points, ConstTensorView batch,
                       const VoxelSiteOptions& options, const Place& row_of);

/// The smallest and largest x, y, z; zeros where there is no point, NaN where one is not a number.
std::array<float, 6> position_bounds(ConstTensorView points);

}   // namespace pumice::cpu
