// A kernel that is loaded, and what its device lets it have.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include <pumice/core/device.hpp>

#include "core/cuda/driver.hpp"

namespace pumice::jit {

namespace detail {

/// What one device says of one kernel; filled in at its first launch there.
struct KernelLimits {
  int most_threads = 0;
  std::int64_t argument_bytes = -1;   // of its one argument; -1 where the driver cannot say
  int static_shared_bytes = 0;
  int most_shared_bytes = 0;   // static and dynamic, of the device
  std::atomic<int> allowed_dynamic_bytes{0};
};

/// What decides when it and the kernel after it may begin: dependent_launch.hpp.
struct LaunchTraits {
  bool waits = false;   // for the grid before it, by itself
  bool writes_only_features = false;
};

struct LoadedKernel {
  LoadedKernel(std::string kernel_name, cuda::KernelHandle kernel_handle,
               LaunchTraits kernel_traits);
  /// Asked for once a device.
  KernelLimits& limits(Device device) const;

  std::string name;
  cuda::KernelHandle handle = nullptr;
  LaunchTraits traits;

 private:
  struct DeviceSlot {
    std::once_flag once;
    KernelLimits limits;
  };
  std::unique_ptr<DeviceSlot[]> slots_;
};

}   // namespace detail

/// One kernel of a Module, valid as long as the process lives.
class Kernel {
 public:
  Kernel() = default;
  explicit Kernel(const detail::LoadedKernel& loaded) : loaded_(&loaded) {}

  bool defined() const { return loaded_ != nullptr; }
  const std::string& name() const { return loaded_->name; }
  const detail::LoadedKernel& loaded() const { return *loaded_; }

  /// Blocks of this shape that one multiprocessor of `device` runs at a time.
  int blocks_per_multiprocessor(Device device, int threads, int shared_bytes) const;

 private:
  const detail::LoadedKernel* loaded_ = nullptr;
};

}   // namespace pumice::jit
