// Coordinates of a set on a device.
#pragma once

#include <pumice/shared/coordinate_set_ref.h>
#include <pumice/core/tensor.hpp>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// Into `coordinates`, int32 [room, 1 + D], in row order; what lies past the last row stays as it
/// is.
void decode_coordinates(jit::KernelRunner& runner, const CoordinateSetRef& set,
                        TensorView coordinates);

}   // namespace pumice::cuda
