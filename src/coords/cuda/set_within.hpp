// A set from coordinates that were made on a device.
#pragma once

#include <pumice/coords/coordinate_set.hpp>

namespace pumice::cuda {

/// `coordinates`: int32 [N, 1 + D] on a device, distinct, within `bounds` and the batch size of
/// `options`, all of which the caller knows. Only enqueues.
CoordinateSetPtr set_within(Tensor coordinates, const CoordinateBounds& bounds,
                            const CoordinateOptions& options);

}   // namespace pumice::cuda
