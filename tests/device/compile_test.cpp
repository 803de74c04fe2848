// Every kernel of coordinates, maps and operators compiles for every kind of GPU, and none spills a
// register.
// Covers every kernel of device/pumice.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "coords/cuda/sources.hpp"
#include "formats/cuda/sources.hpp"
#include "jit/nvrtc_support.hpp"
#include "maps/cuda/sources.hpp"
#include "ops/cuda/sources.hpp"

namespace pumice::test {
namespace {

void expect_compiles(std::span<const jit::KernelGroup> groups) {
  for (const auto& [number, architecture] :
       {std::pair{80, "sm_80"}, {90, "sm_90a"}, {120, "sm_120"}}) {
    if (!compiles_for(number)) continue;
    for (const jit::KernelGroup& group : groups) {
      SCOPED_TRACE(group.source.name + " for " + architecture);
      const jit::CompileResult result = jit::compile(group.source, architecture);
      std::set<std::string> names;
      for (const jit::KernelReport& report : result.kernels) {
        names.insert(report.name);
        EXPECT_EQ(report.spill_store_bytes + report.spill_load_bytes, 0) << report.name;
        EXPECT_EQ(report.stack_bytes, 0) << report.name;
      }
      EXPECT_EQ(names, std::set<std::string>(group.kernels.begin(), group.kernels.end()));
    }
  }
}

TEST(DeviceKernelsCompile, OfCoordinates) {
  PUMICE_NEEDS_NVRTC();
  expect_compiles(cuda::coords_kernels());
}

TEST(DeviceKernelsCompile, OfMaps) {
  PUMICE_NEEDS_NVRTC();
  expect_compiles(cuda::maps_kernels());
  expect_compiles(cuda::formats_kernels());
}

TEST(DeviceKernelsCompile, OfOperators) {
  PUMICE_NEEDS_NVRTC();
  expect_compiles(cuda::ops_kernels());
}

}   // namespace
}   // namespace pumice::test
