// Tests that compile kernels. They need NVRTC, but no device.
#pragma once

#include <algorithm>
#include <string_view>

#include <gtest/gtest.h>

#include "jit/nvrtc.hpp"

/// Skips the test, with the reason, where there is no compiler.
#define PUMICE_NEEDS_NVRTC()                        \
  if (!::pumice::jit::nvrtc_state().reason.empty()) \
  GTEST_SKIP() << ::pumice::jit::nvrtc_state().reason

namespace pumice::test {

inline bool compiles_for(int architecture) {
  const auto& known = jit::nvrtc_state().architectures;
  return std::find(known.begin(), known.end(), architecture) != known.end();
}

}   // namespace pumice::test
