// Coordinates of a set on a device.
#pragma once

#include <pumice/core/tensor.hpp>

#include "coords/cuda/device_set.hpp"

namespace pumice::cuda {

/// Into `coordinates`, int32 [room, 1 + D], in row order; what lies past the last row stays as it
/// is.
void decode_coordinates(jit::KernelRunner& runner, const DeviceSet& set, TensorView coordinates);

}   // namespace pumice::cuda
