// A slab that is carved, and a thread's choice of allocator.
#include <pumice/core/arena.hpp>

#include <cstdint>

#include <gtest/gtest.h>

#include <pumice/core/tensor.hpp>

#include "support/gpu.hpp"
#include "support/message_of.hpp"

namespace pumice {
namespace {

TEST(Arena, IsCarvedFrontToBackAndTakesNothingBack) {
  const auto arena = std::make_shared<ArenaAllocator>(4096, StreamView{});
  const Buffer<float> first(33, {}, arena);
  const Buffer<float> second(1, {}, arena);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second.data()) -
                reinterpret_cast<std::uintptr_t>(first.data()),
            256u);
  { const Buffer<float> third(65, {}, arena); }
  EXPECT_EQ(arena->used(), 256 + 256 + 512);
  arena->rewind();
  const Buffer<float> again(1, {}, arena);
  EXPECT_EQ(again.data(), first.data());
}

TEST(Arena, CanBeFilledToTheLastByte) {
  const auto arena = std::make_shared<ArenaAllocator>(300, StreamView{});
  const Buffer<std::byte> most(256, {}, arena);
  const Buffer<std::byte> rest(44, {}, arena);
  EXPECT_EQ(arena->used(), arena->capacity());
  EXPECT_EQ(
      test::message_of([&] { const Buffer<std::byte> more(1, {}, arena); }),
      "a slab of 300 bytes with 300 in use was asked for 1 more: make it larger, or bound the "
      "capacities");
}

TEST(Arena, GivesTheSlabBackAsAWhole) {
  const std::int64_t before = cpu_memory_use().current_bytes;
  {
    const ArenaAllocator arena(1 << 20, StreamView{});
    EXPECT_EQ(cpu_memory_use().current_bytes - before, 1 << 20);
  }
  EXPECT_EQ(cpu_memory_use().current_bytes, before);
}

TEST(Arena, RefusesAnotherDevice) {
  ArenaAllocator arena(64, StreamView{});
  EXPECT_EQ(test::message_of([&] {
              arena.allocate(1, StreamView{test::kGpu, nullptr});
            }),
            "a slab on cpu asked for memory on cuda:0");
}

TEST(AllocatorScope, TheInnermostOneServesThisThreadAndOnlyItsDevice) {
  const auto outer = std::make_shared<ArenaAllocator>(4096, StreamView{});
  const auto inner = std::make_shared<ArenaAllocator>(4096, StreamView{});
  const AllocatorScope first(Device{}, outer);
  {
    const AllocatorScope second(Device{}, inner);
    const AllocatorScope elsewhere(test::kGpu, outer);
    const Tensor tensor(Shape{10}, DType::f32);
    EXPECT_EQ(inner->used(), 256);
    EXPECT_EQ(outer->used(), 0);
  }
  const Tensor tensor(Shape{10}, DType::f32);
  EXPECT_EQ(outer->used(), 256);
  EXPECT_EQ(inner->used(), 256);
}

TEST(AllocatorScope, OfOnePassDoesNotServeWhatLasts) {
  EXPECT_EQ(lasting_allocator(Device{}), cpu_allocator());
  const auto outer = std::make_shared<ArenaAllocator>(4096, StreamView{});
  const auto of_pass = std::make_shared<ArenaAllocator>(4096, StreamView{});
  const AllocatorScope first(Device{}, outer);
  const AllocatorScope second(Device{}, of_pass, ScopeOf::one_pass);
  EXPECT_EQ(default_allocator(Device{}), of_pass);
  EXPECT_EQ(lasting_allocator(Device{}), outer);
  EXPECT_TRUE(allocates_for_one_pass(Device{}));
  EXPECT_FALSE(allocates_for_one_pass(test::kGpu));
  const AllocatorScope third(Device{}, outer);
  EXPECT_FALSE(allocates_for_one_pass(Device{}));
}

TEST(ArenaGpu, KeepsOneSlabOfTheDevice) {
  PUMICE_NEEDS_GPU();
  const StreamView stream{test::kGpu, nullptr};
  const std::int64_t before = cuda_memory_use(0).current_bytes;
  {
    const auto arena = std::make_shared<ArenaAllocator>(1 << 20, stream);
    const AllocatorScope scope(test::kGpu, arena);
    const Tensor first(Shape{1000}, DType::f32, stream);
    const Tensor second(Shape{1000}, DType::f32, stream);
    EXPECT_EQ(cuda_memory_use(0).current_bytes - before, 1 << 20);
    EXPECT_EQ(arena->used(), 2 * 4096);
  }
  EXPECT_EQ(cuda_memory_use(0).current_bytes, before);
}

}   // namespace
}   // namespace pumice
