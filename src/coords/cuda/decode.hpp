// Coordinates of a set on a device.
#pragma once

#include <pumice/core/tensor.hpp>

#include "coords/cuda/device_set.hpp"

namespace pumice::cuda {

/// int32 [rows, 1 + D] in row order; `rows` are there, or room for so many.
Tensor decode_coordinates(jit::KernelRunner& runner, const DeviceSet& set, std::int64_t rows);

}   // namespace pumice::cuda
