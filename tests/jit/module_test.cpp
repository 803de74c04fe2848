// Modules: loaded once a process, by any thread, and plain about kernels they do not have.
#include "jit/module.hpp"

#include <thread>

#include <pumice/core/stream.hpp>

#include "launch_kernels.hpp"
#include "nvrtc_support.hpp"
#include "support/gpu.hpp"
#include "support/message_of.hpp"

namespace pumice::jit {
namespace {

using test::kGpu;

TEST(ModuleGpu, IsLoadedOnceHoweverManyThreadsAsk) {
  PUMICE_NEEDS_GPU();
  PUMICE_NEEDS_NVRTC();
  std::vector<const Module*> modules(8, nullptr);
  std::vector<std::thread> threads;
  for (const Module*& module : modules)
    threads.emplace_back([&module] { module = &load(kGpu, test::launch_source()); });
  for (std::thread& thread : threads)
    thread.join();
  for (const Module* module : modules)
    EXPECT_EQ(module, modules[0]);
  jit::Source other = test::launch_source();
  other.text += "// another\n";
  EXPECT_NE(&load(kGpu, other), modules[0]);
}

TEST(ModuleGpu, KnowsItsKernels) {
  PUMICE_NEEDS_GPU();
  PUMICE_NEEDS_NVRTC();
  const Module& module = load(kGpu, test::launch_source());
  ASSERT_EQ(module.reports().size(), 3u);
  for (const KernelReport& report : module.reports()) {
    EXPECT_EQ(module.kernel(report.name).name(), report.name);
    EXPECT_GT(report.registers, 0);
    EXPECT_EQ(report.spill_store_bytes, 0);
  }
  EXPECT_GE(module.kernel("saxpy").blocks_per_multiprocessor(kGpu, 256, 0), 4);
  try {
    (void)module.kernel("sapxy");
    FAIL() << "a kernel that is not there was found";
  } catch (const InternalError& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("launch_test.cu has no kernel sapxy; it has "), std::string::npos) << said;
    EXPECT_NE(said.find("report_overflow"), std::string::npos) << said;
  }
}

TEST(ModuleGpu, ASourceThatDoesNotCompileSaysSoEveryTime) {
  PUMICE_NEEDS_GPU();
  PUMICE_NEEDS_NVRTC();
  const Source wrong{.name = "wrong.cu", .text = "extern \"C\" __global__ void f() { g(); }"};
  for (int round = 0; round < 2; ++round)
    EXPECT_THROW((void)load(kGpu, wrong), Error);
}

TEST(ModuleGpu, CompilesForTheArchitectureOfTheDevice) {
  PUMICE_NEEDS_GPU();
  const CudaDeviceInfo& info = cuda_device_info(0);
  const std::string expected = "sm_" + std::to_string(info.major * 10 + info.minor);
  EXPECT_TRUE(architecture_of(kGpu).starts_with(expected)) << architecture_of(kGpu);
}

}   // namespace
}   // namespace pumice::jit
