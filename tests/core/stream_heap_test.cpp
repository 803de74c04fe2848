// Covers memory of a stream's own: reused in order, the same addresses for the same requests, and
// no more than there was while it is captured.
#include <pumice/core/stream_heap.hpp>

#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/buffer.hpp>
#include <pumice/core/stream.hpp>

#include "core/cuda/graph.hpp"
#include "support/gpu.hpp"
#include "support/message_of.hpp"

namespace pumice {
namespace {

using test::kGpu;

/// What a network does: outputs of layers that live until the one after them is made.
std::vector<const void*> run_layers(const std::shared_ptr<StreamHeap>& heap, StreamView stream) {
  std::vector<const void*> addresses;
  Buffer<float> input(65'537, stream, heap);
  for (const std::int64_t size : {1, 33, 65'537, 4'000'000, 31}) {
    Buffer<float> output(size, stream, heap);
    addresses.push_back(output.data());
    input = std::move(output);
  }
  return addresses;
}

TEST(StreamHeap, GivesTheSameAddressesToTheSameRequests) {
  const auto heap = std::make_shared<StreamHeap>(StreamView{});
  const auto first = run_layers(heap, {});
  EXPECT_EQ(run_layers(heap, {}), first);
  EXPECT_EQ(heap->used_bytes(), 0);
}

TEST(StreamHeap, ReusesWhatIsGivenBackAndKeepsItsRegions) {
  const auto heap = std::make_shared<StreamHeap>(StreamView{});
  for (int i = 0; i < 100; ++i)
    const Buffer<std::byte> buffer(1 << 20, {}, heap);
  const std::int64_t reserved = heap->reserved_bytes();
  EXPECT_LE(reserved, 64 << 20);
  const Buffer<std::byte> large(100 << 20, {}, heap);
  EXPECT_EQ(heap->reserved_bytes(), reserved + (100 << 20));
}

TEST(StreamHeap, OutlivesItsOwnerAsLongAsABufferNeedsIt) {
  Buffer<float> kept;
  {
    const auto heap = std::make_shared<StreamHeap>(StreamView{});
    kept = Buffer<float>(1000, {}, heap);
  }
  kept[999] = 1;
  EXPECT_EQ(kept[999], 1);
}

TEST(StreamHeap, CarvesTheRegionsOfAnotherAsIfAllWereFree) {
  const auto first = std::make_shared<StreamHeap>(StreamView{});
  const Buffer<std::byte> held(40 << 20, {}, first);
  const auto second = std::make_shared<StreamHeap>(*first);
  EXPECT_EQ(second->reserved_bytes(), first->reserved_bytes());
  EXPECT_EQ(second->used_bytes(), 0);
  const Buffer<std::byte> over(40 << 20, {}, second);
  EXPECT_EQ(over.data(), held.data());
  // What one takes anew, the other finds before it takes more itself.
  const Buffer<std::byte> large(100 << 20, {}, second);
  const std::int64_t all = second->reserved_bytes();
  EXPECT_LT(first->reserved_bytes(), all);
  const Buffer<std::byte> as_large(100 << 20, {}, first);
  EXPECT_EQ(as_large.data(), large.data());
  EXPECT_EQ(first->reserved_bytes(), all);
}

TEST(StreamHeap, KeepsRegionsThatAHeapThatHasGoneTook) {
  auto first = std::make_shared<StreamHeap>(StreamView{});
  const auto second = std::make_shared<StreamHeap>(*first);
  { const Buffer<float> buffer(1000, {}, first); }
  first.reset();
  Buffer<float> kept(1000, {}, second);
  EXPECT_EQ(second->reserved_bytes(), 64 << 20);
  kept[999] = 1;
  EXPECT_EQ(kept[999], 1);
}

TEST(StreamHeapGpu, RefusesAnotherStream) {
  PUMICE_NEEDS_GPU();
  const Stream mine(kGpu), other(kGpu);
  const auto heap = std::make_shared<StreamHeap>(mine);
  EXPECT_NE(test::message_of([&] { const Buffer<float> buffer(1, other, heap); }).find("stream"),
            std::string::npos);
}

TEST(StreamHeapGpu, DoesNotGrowWhileItIsCaptured) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const auto heap = std::make_shared<StreamHeap>(stream);
  const auto run = [&] { run_layers(heap, stream); };
  EXPECT_NE(test::message_of([&] { cuda::Graph::capture(stream, run); }).find("run it once"),
            std::string::npos);
  const auto before = run_layers(heap, stream);
  std::vector<const void*> captured;
  cuda::Graph::capture(stream, [&] { captured = run_layers(heap, stream); });
  EXPECT_EQ(captured, before);
}

}   // namespace
}   // namespace pumice
