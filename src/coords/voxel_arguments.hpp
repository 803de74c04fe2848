// What is asked of points and options before voxels are made of them.
#pragma once

#include <pumice/coords/voxel_sites.hpp>

namespace pumice::detail {

/// UserError, naming the argument, for what `voxel_sites` refuses whatever the values of points.
void check_voxel_arguments(const ConstTensorView& points, const ConstTensorView& batch,
                           const VoxelSiteOptions& options);

}   // namespace pumice::detail
