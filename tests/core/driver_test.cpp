// Opening the CUDA driver: whatever is wrong is said, and nothing is thrown.
#include "core/cuda/driver.hpp"

#include <stdlib.h>

#include <string>

#include <gtest/gtest.h>

#include <pumice/core/error.hpp>

#include "support/gpu.hpp"

namespace pumice::cuda {
namespace {

/// The fake driver behaves in one way for as long as this lives.
class Behaviour {
 public:
  explicit Behaviour(const char* value) { setenv("PUMICE_FAKE_DRIVER", value, 1); }
  ~Behaviour() { unsetenv("PUMICE_FAKE_DRIVER"); }
  Behaviour(const Behaviour&) = delete;
  Behaviour& operator=(const Behaviour&) = delete;
};

std::string reason_with(const char* behaviour, const std::string& visible_devices = "") {
  const Behaviour now(behaviour);
  return open_driver({PUMICE_FAKE_DRIVER}, visible_devices).reason;
}

TEST(Driver, OneThatWorksHasNoReasonNotTo) {
  const DriverState state = open_driver({PUMICE_FAKE_DRIVER}, "");
  EXPECT_EQ(state.reason, "");
  EXPECT_EQ(state.version, 13000);
  EXPECT_EQ(state.devices, 2);
  EXPECT_NE(state.functions.cuLaunchKernelEx, nullptr);
}

TEST(Driver, AMissingLibraryIsNamed) {
  const DriverState state = open_driver({"/nowhere/libcuda.so.1", "/nowhere/else"}, "");
  EXPECT_TRUE(state.reason.starts_with("no CUDA driver: /nowhere/libcuda.so.1: ")) << state.reason;
  EXPECT_TRUE(state.reason.ends_with("; install NVIDIA's driver, or compute on the CPU"))
      << state.reason;
  EXPECT_EQ(state.devices, 0);
}

TEST(Driver, AnotherLibraryIsNoDriver) {
  EXPECT_EQ(open_driver({"/nowhere/libcuda.so.1", "libc.so.6"}, "").reason,
            "libc.so.6 is no CUDA driver: it has no cuInit");
}

TEST(Driver, OneThatIsTooOldIsToldBothVersions) {
  EXPECT_EQ(reason_with("old"),
            "the CUDA driver is too old: it serves CUDA 11.8, Pumice needs 12.1 (driver 530.30) or "
            "later; update it, or compute on the CPU");
}

TEST(Driver, AMachineWithoutDevicesSaysWhatIsHidden) {
  EXPECT_EQ(reason_with("no device"),
            "the CUDA driver (CUDA 13.0) sees no device; `nvidia-smi -L` lists what there is, "
            "without one "
            "compute on the CPU");
  EXPECT_EQ(
      reason_with("no device", "5"),
      "the CUDA driver (CUDA 13.0) sees no device; it is told to show only \"5\" "
      "(CUDA_VISIBLE_DEVICES); `nvidia-smi -L` lists what there is, without one compute on the "
      "CPU");
}

TEST(Driver, WhatTheDriverSaysOfItselfIsPassedOn) {
  EXPECT_EQ(reason_with("broken"), "CUDA does not start: CUDA_ERROR: as the fake driver has it");
}

TEST(DriverGpu, AnErrorAfterWhichCudaIsLostSaysSo) {
  PUMICE_NEEDS_GPU();
  const auto said = [](Result result) -> std::string {
    try {
      check(result, "kernel conv");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(said(kSuccess), "");
  EXPECT_TRUE(said(700).starts_with("kernel conv: CUDA_ERROR_ILLEGAL_ADDRESS: "));
  EXPECT_NE(said(700).find("; CUDA is lost to this process, which has to end"), std::string::npos);
  EXPECT_EQ(said(kInvalidValue).find("lost"), std::string::npos);
}

TEST(Driver, VersionsAreWrittenAsUsersKnowThem) {
  EXPECT_EQ(version_text(12040), "12.4");
  EXPECT_EQ(version_text(13000), "13.0");
}

}   // namespace
}   // namespace pumice::cuda
