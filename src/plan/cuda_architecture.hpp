// Which column of the tables of schedules a device reads.
#pragma once

#include <cstdint>
#include <span>

#include <pumice/core/device.hpp>

namespace pumice::cuda {

struct NamedArchitecture {
  const char* name;    // as the compiler calls it: "sm_90a"
  std::uint32_t bit;   // of Architecture (tile_limits.h)
};
/// Those that kernels are specified for, in ascending order.
std::span<const NamedArchitecture> known_architectures();

/// The one bit of Architecture (tile_limits.h) for a device: kernels of the newest known one that
/// runs there.
std::uint32_t architecture_bit(Device device);

/// Of the device of `stream`; 24 for the host, where tests run device code.
int multiprocessors_of(StreamView stream);

}   // namespace pumice::cuda
