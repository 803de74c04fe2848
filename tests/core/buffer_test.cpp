// Buffers and the CPU allocator: who owns what, and that use is counted.
#include <pumice/core/buffer.hpp>

#include <gtest/gtest.h>

namespace pumice {
namespace {

/// Remembers every call, so that a test can see that what was taken was given back.
class CountingAllocator final : public Allocator {
 public:
  void* allocate(std::size_t bytes, StreamView stream) override {
    taken += static_cast<std::int64_t>(bytes);
    last_stream = stream;
    return cpu_allocator()->allocate(bytes, stream);
  }
  void deallocate(void* data, std::size_t bytes, StreamView stream) noexcept override {
    taken -= static_cast<std::int64_t>(bytes);
    cpu_allocator()->deallocate(data, bytes, stream);
  }
  std::int64_t taken = 0;
  StreamView last_stream{};
};

TEST(Buffer, GivesBackToTheAllocatorItCameFrom) {
  const auto allocator = std::make_shared<CountingAllocator>();
  const StreamView stream{Device{}, reinterpret_cast<void*>(0x10)};
  {
    Buffer<float> buffer(1000, stream, allocator);
    EXPECT_EQ(allocator->taken, 4000);
    EXPECT_EQ(allocator->last_stream, stream);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % kAlignment, 0u);
    Buffer<float> moved = std::move(buffer);
    EXPECT_EQ(moved.size(), 1000);
    Buffer<float> assigned(10, stream, allocator);
    assigned = std::move(moved);
    EXPECT_EQ(allocator->taken, 4000);
  }
  EXPECT_EQ(allocator->taken, 0);
}

TEST(Buffer, OfNothingAsksForNothing) {
  const auto allocator = std::make_shared<CountingAllocator>();
  const Buffer<double> buffer(0, {}, allocator);
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_EQ(allocator->taken, 0);
}

TEST(CpuAllocator, CountsCurrentAndPeakUse) {
  release_cpu_cache();
  reset_cpu_memory_peak();
  const MemoryUse before = cpu_memory_use();
  {
    const Buffer<std::byte> large(std::int64_t{8} << 20);
    EXPECT_EQ(cpu_memory_use().current_bytes - before.current_bytes, 8 << 20);
  }
  EXPECT_EQ(cpu_memory_use().current_bytes, before.current_bytes);
  EXPECT_EQ(cpu_memory_use().peak_bytes - before.peak_bytes, 8 << 20);
}

TEST(CpuAllocator, HandsAFreedLargeBlockToTheNextWhoAsks) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "under AddressSanitizer every block is its own, so that overruns are seen";
#endif
  release_cpu_cache();
  const std::byte* first = nullptr;
  {
    const Buffer<std::byte> block(std::int64_t{8} << 20);
    first = block.data();
  }
  const Buffer<std::byte> again((std::int64_t{8} << 20) - 5);
  EXPECT_EQ(again.data(), first);
}

TEST(CpuAllocator, HoldsNoMoreThanWasOnceInUseTogether) {
  release_cpu_cache();
  reset_cpu_memory_peak();
  const std::int64_t before = cpu_memory_use().current_bytes;
  for (const std::int64_t mebibytes : {6, 20, 64, 10, 200, 40}) {   // no two can share a block
    const Buffer<std::byte> block(mebibytes << 20);
    EXPECT_EQ(cpu_memory_use().current_bytes - before, mebibytes << 20);
  }
  EXPECT_EQ(cpu_memory_use().peak_bytes - before, std::int64_t{200} << 20);
}

}   // namespace
}   // namespace pumice
