// Compute capability to architecture.
#include "kernels/cuda/architecture.hpp"

#include <pumice/shared/tile_limits.h>
#include <pumice/core/cuda.hpp>
#include <pumice/core/error.hpp>

namespace pumice::cuda {

std::span<const NamedArchitecture> known_architectures() {
  static constexpr NamedArchitecture kKnown[] = {{"sm_80", kSm80},   {"sm_86", kSm86},
                                                 {"sm_89", kSm89},   {"sm_90a", kSm90a},
                                                 {"sm_100", kSm100}, {"sm_120", kSm120}};
  return kKnown;
}

std::uint32_t architecture_bit(Device device) {
  const CudaDeviceInfo& info = cuda_device_info(device.index);
  const int version = info.major * 10 + info.minor;
  PUMICE_EXPECTS(version >= 80, to_string(device), " is a ", info.name, " of compute capability ",
                 info.major, ".", info.minor,
                 ": convolutions need 8.0 or more, so run them on the CPU");
  return version >= 120   ? kSm120
         : version >= 100 ? kSm100
         : version >= 90  ? kSm90a
         : version >= 89  ? kSm89
         : version >= 86  ? kSm86
                          : kSm80;
}

int multiprocessors_of(StreamView stream) {
  return stream.device.kind == DeviceKind::cuda
             ? cuda_device_info(stream.device.index).multiprocessors
             : 24;
}

}   // namespace pumice::cuda
