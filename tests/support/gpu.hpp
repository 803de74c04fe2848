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

}   // namespace pumice::test
