// A device's own allocator: counted, aligned, patient during captures, plain about its limits.
#include <cstdint>
#include <optional>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/cuda.hpp>
#include <pumice/core/stream.hpp>

#include "core/cuda/graph.hpp"
#include "support/gpu.hpp"

namespace pumice {
namespace {

TEST(PoolAllocatorGpu, CountsCurrentAndPeakUse) {
  PUMICE_NEEDS_GPU();
  const Stream stream(test::kGpu);
  reset_cuda_memory_peak(0);
  const MemoryUse before = cuda_memory_use(0);
  EXPECT_EQ(before.current_bytes, before.peak_bytes);
  {
    const Buffer<std::byte> first(std::int64_t{8} << 20, stream);
    { const Buffer<std::byte> second(std::int64_t{4} << 20, stream); }
    EXPECT_EQ(cuda_memory_use(0).current_bytes - before.current_bytes, 8 << 20);
  }
  EXPECT_EQ(cuda_memory_use(0).current_bytes, before.current_bytes);
  EXPECT_EQ(cuda_memory_use(0).peak_bytes - before.peak_bytes, 12 << 20);
}

TEST(PoolAllocatorGpu, AlignsEveryBlock) {
  PUMICE_NEEDS_GPU();
  const Stream stream(test::kGpu);
  for (const std::int64_t size : {1, 3, 255, 257, 100001}) {
    const Buffer<std::byte> buffer(size, stream);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % kCudaAlignment, 0u) << size;
  }
  const Buffer<std::byte> nothing(0, stream);
  EXPECT_EQ(nothing.data(), nullptr);
}

TEST(PoolAllocatorGpu, SaysWhatWasAskedForAndWhatThereIs) {
  PUMICE_NEEDS_GPU();
  const Stream stream(test::kGpu);
  const std::int64_t size = cuda_device_info(0).memory_bytes + (std::int64_t{1} << 30);
  try {
    const Buffer<std::byte> buffer(size, stream);
    FAIL() << "more memory than there is was handed out";
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_TRUE(
        said.starts_with("out of memory on cuda:0: " + std::to_string(size) + " bytes asked for, "))
        << said;
    EXPECT_NE(said.find(" in use by Pumice, "), std::string::npos) << said;
  }
  const Buffer<std::byte> modest(1000, stream);   // and goes on
  EXPECT_NE(modest.data(), nullptr);
}

TEST(PoolAllocatorGpu, ReturnsWhatItKeptBeforeItGivesUp) {
  PUMICE_NEEDS_GPU();
  const Stream stream(test::kGpu);
  release_cuda_cache(0);
  const std::int64_t half = cuda_device_info(0).memory_bytes / 8 * 3;
  for (int round = 0; round < 4; ++round) {   // together more than the device has
    const Buffer<std::byte> buffer(half + round * 4096, stream);
    EXPECT_NE(buffer.data(), nullptr);
  }
  release_cuda_cache(0);
}

TEST(PoolAllocatorGpu, KeepsWhatACaptureCannotFreeUntilItIsOver) {
  PUMICE_NEEDS_GPU();
  const Stream stream(test::kGpu);
  const std::int64_t before = cuda_memory_use(0).current_bytes;
  std::optional<Tensor> old = Tensor::full(Shape{1000}, DType::i32, 5, stream);
  Tensor kept = Tensor::zeros(Shape{1000}, DType::i32, stream);
  const cuda::Graph graph = cuda::Graph::capture(stream, [&] {
    const Tensor passing =
        Tensor::full(Shape{1000}, DType::i32, 9, stream);   // a node of the graph
    copy_async(kept.view(), passing, stream);
    old.reset();
  });
  graph.launch();
  graph.launch();
  EXPECT_EQ(copy_to_host(kept, stream).span<std::int32_t>()[999], 9);
  const Buffer<std::byte> next(16, stream);   // frees what waited
  EXPECT_EQ(cuda_memory_use(0).current_bytes - before, 4000 + 16);
}

}   // namespace
}   // namespace pumice
