// Sets from coordinates that are on a device already.
#pragma once

#include <pumice/coords/unique.hpp>

namespace pumice::cuda {

/// coordinates: int32 [N, 1 + D] on a device, copied. Where `options` declare bounds and a batch
/// size this only enqueues, and what breaks them, or a site that repeats, is raised by the next
/// call that waits for the stream; else the coordinates are brought to the host to be looked at.
CoordinateSetPtr create(const ConstTensorView& coordinates, CoordinateOptions options);

/// The same for coordinates that may repeat. Waits for how many sites there are.
UniqueCoordinates unique_coordinates(const ConstTensorView& coordinates, CoordinateOptions options);

}   // namespace pumice::cuda
