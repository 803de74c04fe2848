// The machine that a plan is for, as far as choices depend on it.
#pragma once

#include <cstdint>
#include <string>

#include <pumice/core/device.hpp>

namespace pumice {

struct Target {
  DeviceKind kind = DeviceKind::cpu;
  std::uint32_t architecture = 0;     // CUDA: one bit of Architecture (pumice/shared/tile_limits.h)
  std::int32_t multiprocessors = 0;   // CUDA
  std::int64_t l2_bytes = 0;          // CUDA: of the device; CPU: of a core
  std::int32_t cores = 0;             // CPU: threads that the task scheduler starts
  /// "NVIDIA H200"; of a CPU its model and the instructions that kernels use. What measured plans
  /// are kept under (`machine_of`); empty for a machine that nothing can have been measured on.
  std::string name{};

  bool on_device() const { return kind == DeviceKind::cuda; }
  friend bool operator==(const Target&, const Target&) = default;
};

/// Asks the device once. UserError where it is too old for any kernel of a convolution.
const Target& target_of(Device device);

/// A device of an architecture that kernels are compiled ahead for: the largest known one, without
/// a name.
Target usual_target(std::uint32_t architecture);

}   // namespace pumice
