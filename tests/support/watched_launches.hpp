// Which kernels a device is given: not what anybody says of it.
#pragma once

#include <utility>
#include <vector>

#include "core/cuda/driver.hpp"

namespace pumice::test {

/// Notes what this thread launches while it lives, by putting itself before the driver's function.
/// One at a time, while nothing else launches; a real driver and the fake one alike.
class WatchedLaunches {
 public:
  struct Launch {
    cuda::FunctionHandle kernel;   // jit::Kernel::loaded().handle, as another type
    cuda::LaunchConfig config;
  };

  WatchedLaunches() {
    launch_ = functions().cuLaunchKernelEx;
    functions().cuLaunchKernelEx = &note;
  }
  WatchedLaunches(const WatchedLaunches&) = delete;
  WatchedLaunches& operator=(const WatchedLaunches&) = delete;
  ~WatchedLaunches() {
    functions().cuLaunchKernelEx = launch_;
    launches_.clear();
  }

  /// Those since the last call, in order.
  std::vector<Launch> take() { return std::exchange(launches_, {}); }

 private:
  using Function = decltype(cuda::Driver::cuLaunchKernelEx);

  /// The process's own table, which is not const where it lies.
  static cuda::Driver& functions() { return const_cast<cuda::Driver&>(cuda::driver()); }

  static cuda::Result note(const cuda::LaunchConfig* config, cuda::FunctionHandle kernel,
                           void** arguments, void** more) {
    launches_.push_back({kernel, *config});
    return launch_(config, kernel, arguments, more);
  }

  inline static Function launch_ = nullptr;
  inline static std::vector<Launch> launches_;
};

}   // namespace pumice::test
