// Features of points to features of voxels.
#pragma once

#include <cstdint>
#include <span>

#include <pumice/points/voxelize.hpp>

namespace pumice::detail {

/// Fills `voxels.features` from the clouds' features by way of `voxel_begin` and `voxel_points`.
void reduce_features(std::span<const FeaturedCloud> clouds, Reduction reduction, Voxels& voxels);

}   // namespace pumice::detail
