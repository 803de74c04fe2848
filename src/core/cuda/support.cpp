// What <pumice/core/cuda.hpp> says about this machine.
#include <array>
#include <mutex>
#include <vector>

#include <pumice/core/cuda.hpp>
#include <pumice/core/error.hpp>

#include "core/cuda/driver.hpp"

namespace pumice {
namespace {

int attribute(cuda::DeviceId id, cuda::DeviceAttribute which) {
  int value = 0;
  PUMICE_CUDA(cuDeviceGetAttribute(&value, which, id));
  return value;
}

CudaDeviceInfo describe(int index) {
  cuda::DeviceId id = 0;
  PUMICE_CUDA(cuDeviceGet(&id, index));
  std::array<char, 256> name{};
  PUMICE_CUDA(cuDeviceGetName(name.data(), static_cast<int>(name.size()), id));
  std::size_t bytes = 0;
  PUMICE_CUDA(cuDeviceTotalMem_v2(&bytes, id));
  return {.name = name.data(),
          .major = attribute(id, cuda::kComputeMajor),
          .minor = attribute(id, cuda::kComputeMinor),
          .multiprocessors = attribute(id, cuda::kMultiprocessors),
          .memory_bytes = static_cast<std::int64_t>(bytes),
          .l2_bytes = attribute(id, cuda::kL2Bytes),
          .shared_bytes = attribute(id, cuda::kSharedBytesPerBlock)};
}

const std::vector<CudaDeviceInfo>& infos() {
  static const std::vector<CudaDeviceInfo> all = [] {
    std::vector<CudaDeviceInfo> found;
    for (int index = 0; index < cuda::driver_state().devices; ++index)
      found.push_back(describe(index));
    return found;
  }();
  return all;
}

}   // namespace

const CudaSupport& cuda_support() noexcept {
  static const CudaSupport& support = *new CudaSupport([] {
    const cuda::DriverState& state = cuda::driver_state();
    return CudaSupport{.available = state.reason.empty(),
                       .reason = state.reason,
                       .version = state.version == 0 ? "" : cuda::version_text(state.version),
                       .devices = state.reason.empty() ? state.devices : 0};
  }());
  return support;
}

const CudaDeviceInfo& cuda_device_info(int index) {
  const int devices = (cuda::driver(), cuda::driver_state().devices);
  PUMICE_EXPECTS(index >= 0 && index < devices, "cuda:", index, " is not there: this process sees ",
                 devices, " CUDA device", devices == 1 ? "" : "s");
  return infos()[static_cast<std::size_t>(index)];
}

}   // namespace pumice
