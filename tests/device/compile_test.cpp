// Every kernel of coordinates, maps and operators compiles, and none spills a register.
// By default each is compiled for one architecture, by turns, and both compilers begin with another
// one; with this, each for all:
//
//   PUMICE_ALL_SPECS=1 pumice_device_test --gtest_filter='DeviceKernelsCompile*'
// Covers every kernel of device/pumice.
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "coords/cuda/sources.hpp"
#include "formats/cuda/sources.hpp"
#include "graphs/cuda/sources.hpp"
#include "jit/nvrtc_support.hpp"
#include "maps/cuda/sources.hpp"
#include "ops/cuda/sources.hpp"

namespace pumice::test {
namespace {

void expect_compiles(std::span<const jit::KernelGroup> groups) {
  std::vector<std::string> architectures;
  for (const auto& [number, architecture] :
       {std::pair{80, "sm_80"}, {90, "sm_90a"}, {120, "sm_120"}}) {
    if (compiles_for(number)) architectures.emplace_back(architecture);
  }
  const bool all = std::getenv("PUMICE_ALL_SPECS") != nullptr;
  auto turn = static_cast<std::size_t>(jit::nvrtc_state().major);
  for (const jit::KernelGroup& group : groups) {
    ++turn;
    for (std::size_t i = 0; i < architectures.size(); ++i) {
      if (!all && i != turn % architectures.size()) continue;
      SCOPED_TRACE(group.source.name + " for " + architectures[i]);
      const jit::CompileResult result = jit::compile(group.source, architectures[i]);
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
  expect_compiles(cuda::graphs_kernels());
  expect_compiles(cuda::formats_kernels());
}

TEST(DeviceKernelsCompile, OfOperators) {
  PUMICE_NEEDS_NVRTC();
  expect_compiles(cuda::ops_kernels());
}

}   // namespace
}   // namespace pumice::test
