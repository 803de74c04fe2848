// Voxels of points on a device.
#pragma once

#include <pumice/coords/voxel_sites.hpp>

namespace pumice::cuda {

/// Arguments are checked.
VoxelSites voxel_sites(ConstTensorView points, ConstTensorView batch,
                       const VoxelSiteOptions& options, const Place& row_of);

}   // namespace pumice::cuda
