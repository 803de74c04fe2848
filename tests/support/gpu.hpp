// Tests that need a CUDA device. Their suites' names end in Gpu, which gives them ctest's label
// `gpu`.
#pragma once

#include <gtest/gtest.h>

#include <pumice/core/cuda.hpp>

/// Skips the test, with the reason, where there is no device.
#define PUMICE_NEEDS_GPU() \
  if (!::pumice::cuda_support().available) GTEST_SKIP() << ::pumice::cuda_support().reason

/// Skips the test where this process sees fewer than `count` devices.
#define PUMICE_NEEDS_GPUS(count)                  \
  if (::pumice::cuda_support().devices < (count)) \
  GTEST_SKIP() << "needs " << (count) << " CUDA devices, sees " << ::pumice::cuda_support().devices

namespace pumice::test {

inline constexpr Device kGpu{DeviceKind::cuda, 0};

/// Whether the device is that of tests/fake_driver/, which takes seconds for what takes a GPU
/// microseconds: there a test does less of the same.
inline bool on_emulator() {
  return cuda_support().available && cuda_device_info(0).name == "Fake GPU";
}

}   // namespace pumice::test
