// Checks the arguments of voxelisation and hands them to the back end.
#include <pumice/coords/voxel_sites.hpp>

#include <cmath>
#include <limits>

#include <pumice/core/error.hpp>

#include "coords/cpu/voxel_sites.hpp"
#include "coords/cuda/voxel_sites.hpp"
#include "coords/voxel_arguments.hpp"

namespace pumice {
namespace {

void check_options(const VoxelSiteOptions& options) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    PUMICE_EXPECTS(std::isfinite(options.size[axis]) && options.size[axis] > 0.0f,
                   "voxel size along ", "xyz"[axis], " = ", options.size[axis],
                   "; give a positive number of metres");
    if (options.spatial_shape) {
      PUMICE_EXPECTS((*options.spatial_shape)[axis] >= 1, "spatial_shape[", axis,
                     "] = ", (*options.spatial_shape)[axis], "; give at least 1");
    }
    if (!options.range) continue;
    const float low = (*options.range)[axis];
    const float high = (*options.range)[axis + 3];
    PUMICE_EXPECTS(std::isfinite(low) && std::isfinite(high), "range along ", "xyz"[axis], " = [",
                   low, ", ", high, "), which is not finite; give metres, as -100 and 100");
    PUMICE_EXPECTS(low < high, "range along ", "xyz"[axis], " = [", low, ", ", high,
                   "), which is empty; give x0 y0 z0 x1 y1 z1 in metres, each low below its high");
  }
  PUMICE_EXPECTS(options.batch_size >= 1, "batch_size = ", options.batch_size, "; give at least 1");
}

}   // namespace

void detail::check_voxel_arguments(const ConstTensorView& points, const ConstTensorView& batch,
                                   const VoxelSiteOptions& options) {
  check_options(options);
  PUMICE_EXPECTS(points.rank() == 2 && points.extent(1) >= 3 && points.dtype() == DType::f32,
                 "points have shape ", to_string(points.shape()), ' ', name_of(points.dtype()),
                 "; give [P, 3 or more] f32, x, y, z first");
  PUMICE_EXPECTS(points.rows() <= std::numeric_limits<std::int32_t>::max(), points.rows(),
                 " points; at most 2^31 - 1 fit, so voxelise fewer clouds at once");
  if (batch.defined()) {
    PUMICE_EXPECTS(
        batch.rank() == 1 && batch.rows() == points.rows() && batch.dtype() == DType::i32,
        "batch has shape ", to_string(batch.shape()), ' ', name_of(batch.dtype()), "; give [",
        points.rows(), "] i32, one item for each point");
    PUMICE_EXPECTS(batch.device() == points.device(), "batch is on ", to_string(batch.device()),
                   " and points are on ", to_string(points.device()));
  }
}

VoxelSites voxel_sites(ConstTensorView points, ConstTensorView batch,
                       const VoxelSiteOptions& options, const Place& row_of) {
  detail::check_voxel_arguments(points, batch, options);
  if (points.device().kind == DeviceKind::cuda)
    return cuda::voxel_sites(points, batch, options, row_of);
  return cpu::voxel_sites(points, batch, options, row_of);
}

}   // namespace pumice
