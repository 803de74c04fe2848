// What Pumice says about CUDA on this machine: with a device its figures, without one the reason.
#include <gtest/gtest.h>

#include <pumice/core/cuda.hpp>

#include "support/gpu.hpp"
#include "support/message_of.hpp"

namespace pumice {
namespace {

TEST(CudaSupport, EitherIsThereOrSaysWhyNot) {
  const CudaSupport& support = cuda_support();
  EXPECT_EQ(support.available, support.reason.empty());
  EXPECT_EQ(support.available, support.devices > 0);
  if (support.available) return;
  for (const auto& use : {+[] { (void)cuda_device_info(0); }, +[] { (void)cuda_allocator(0); },
                          +[] { (void)default_allocator(test::kGpu); }}) {
    EXPECT_EQ(test::message_of(use), "CUDA is not available: " + support.reason);
  }
}

TEST(CudaSupportGpu, DescribesEveryDevice) {
  PUMICE_NEEDS_GPU();
  for (int index = 0; index < cuda_support().devices; ++index) {
    const CudaDeviceInfo& info = cuda_device_info(index);
    EXPECT_NE(info.name, "");
    EXPECT_GE(info.major, 7);
    EXPECT_GT(info.multiprocessors, 0);
    EXPECT_GE(info.memory_bytes, std::int64_t{1} << 30);
    EXPECT_GE(info.shared_bytes, 48 << 10);
  }
  EXPECT_THROW((void)cuda_device_info(cuda_support().devices), UserError);
  EXPECT_THROW((void)cuda_device_info(-1), UserError);
  EXPECT_THROW((void)cuda_allocator(cuda_support().devices), UserError);
}

}   // namespace
}   // namespace pumice
