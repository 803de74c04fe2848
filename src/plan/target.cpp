// What is asked of devices and of this machine, once.
#include <pumice/plan/target.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include <unistd.h>

#include <pumice/shared/tile_limits.h>
#include <pumice/core/cuda.hpp>
#include <pumice/core/error.hpp>

#include <hwy/targets.h>

#include "plan/cuda_architecture.hpp"

namespace pumice {
namespace {

constexpr std::int64_t kUsualL2Bytes = 512 * 1024;   // of a core, where the system does not tell

/// "AMD EPYC 7B13", as the system calls it.
std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

std::string cpu_name() {
  const std::int64_t best = hwy::SupportedTargets() & -hwy::SupportedTargets();
  return cpu_model() + ", " + hwy::TargetName(best);
}

Target cpu_target() {
  Target target;
  const long l2 = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
  target.l2_bytes = l2 > 0 ? std::int64_t{l2} : kUsualL2Bytes;
  target.name = cpu_name();
  target.cores = static_cast<std::int32_t>(std::max(1u, std::thread::hardware_concurrency()));
  return target;
}

Target cuda_target(Device device) {
  const CudaDeviceInfo& info = cuda_device_info(device.index);
  return {.kind = DeviceKind::cuda,
          .architecture = cuda::architecture_bit(device),
          .multiprocessors = info.multiprocessors,
          .l2_bytes = info.l2_bytes,
          .name = info.name};
}

}   // namespace

const Target& target_of(Device device) {
  static const Target cpu = cpu_target();
  if (device.kind == DeviceKind::cpu) return cpu;
  static std::mutex mutex;
  static auto& devices = *new std::map<int, Target>;   // addresses stay
  const std::scoped_lock lock(mutex);
  const auto found = devices.find(device.index);
  if (found != devices.end()) return found->second;
  return devices.emplace(device.index, cuda_target(device)).first->second;
}

Target usual_target(std::uint32_t architecture) {
  // A100, RTX 3090, RTX 4090, H100 SXM and H200, B200, RTX 5090.
  const std::int32_t multiprocessors = architecture == kSm80    ? 108
                                       : architecture == kSm86  ? 82
                                       : architecture == kSm89  ? 128
                                       : architecture == kSm90a ? 132
                                       : architecture == kSm100 ? 148
                                                                : 170;
  return {.kind = DeviceKind::cuda,
          .architecture = architecture,
          .multiprocessors = multiprocessors,
          .l2_bytes = std::int64_t{50} << 20};
}

namespace cuda {

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

}   // namespace cuda
}   // namespace pumice
