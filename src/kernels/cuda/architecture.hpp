// Which column of the table of tile specifications a device reads.
#pragma once

#include <cstdint>

#include <pumice/core/device.hpp>

namespace pumice::cuda {

/// The one bit of Architecture (tile_limits.h) for a device: kernels of the newest known one that
/// runs there.
std::uint32_t architecture_bit(Device device);

/// Of the device of `stream`; 1 for the host, where tests run device code.
int multiprocessors_of(StreamView stream);

}   // namespace pumice::cuda
