// Blocks of a heap never overlap, fit as tightly as they can and grow together again.
#include "core/block_heap.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/random.hpp>

namespace pumice {
namespace {

std::byte* address(std::uintptr_t value) {
  return reinterpret_cast<std::byte*>(value);
}

TEST(BlockHeap, TakesTheSmallestBlockThatFits) {
  BlockHeap heap;
  heap.add_region(address(1000), 100);
  heap.add_region(address(5000), 30);
  EXPECT_EQ(heap.region_bytes(), 130u);
  EXPECT_EQ(heap.take(20), address(5000));
  EXPECT_EQ(heap.take(20), address(1000));
  EXPECT_EQ(heap.take(10), address(5020));
  EXPECT_EQ(heap.take(80), address(1020));
  EXPECT_EQ(heap.take(1), nullptr);
}

TEST(BlockHeap, NeighboursMergeInEveryOrderButRegionsDoNot) {
  const std::vector<std::vector<int>> orders{{0, 1, 2}, {2, 1, 0}, {1, 0, 2},
                                             {0, 2, 1}, {1, 2, 0}, {2, 0, 1}};
  for (const std::vector<int>& order : orders) {
    BlockHeap heap;
    heap.add_region(address(100), 30);
    heap.add_region(address(130), 10);   // right behind: still a region of its own
    std::byte* last = heap.take(10);
    std::byte* blocks[] = {heap.take(10), heap.take(10), heap.take(10)};
    EXPECT_EQ(last, address(130));
    for (const int i : order)
      EXPECT_EQ(heap.give_back(blocks[i]), 10u);
    EXPECT_EQ(heap.take(31), nullptr);
    EXPECT_EQ(heap.take(30), address(100));
  }
}

TEST(BlockHeap, GivesUpOnlyRegionsThatNobodyUses) {
  BlockHeap heap;
  heap.add_region(address(1000), 100);
  heap.add_region(address(2000), 50);
  std::byte* block = heap.take(60);
  EXPECT_EQ(heap.remove_free_region(), address(2000));
  EXPECT_EQ(heap.remove_free_region(), nullptr);
  EXPECT_TRUE(heap.holds(block));
  EXPECT_FALSE(heap.holds(address(2000)));
  heap.give_back(block);
  EXPECT_EQ(heap.remove_free_region(), address(1000));
  EXPECT_EQ(heap.region_bytes(), 0u);
}

TEST(BlockHeap, BlocksInUseNeverOverlap) {
  struct Taken {
    std::uintptr_t begin, end;
  };
  BlockHeap heap;
  Random random(5);
  std::vector<Taken> taken;
  heap.add_region(address(1 << 20), 4000);
  heap.add_region(address(1 << 22), 1000);
  std::uintptr_t in_use = 0;
  for (int step = 0; step < 20000; ++step) {
    if (random.integer(0, 1) == 0 || taken.empty()) {
      const auto bytes = static_cast<std::size_t>(random.integer(1, 400));
      std::byte* block = heap.take(bytes);
      if (block == nullptr) continue;
      const auto begin = reinterpret_cast<std::uintptr_t>(block);
      for (const Taken& other : taken) {
        ASSERT_TRUE(begin + bytes <= other.begin || other.end <= begin) << "step " << step;
      }
      taken.push_back({begin, begin + bytes});
      in_use += bytes;
    } else {
      const auto at =
          static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(taken.size()) - 1));
      const std::uintptr_t bytes = taken[at].end - taken[at].begin;
      ASSERT_EQ(heap.give_back(address(taken[at].begin)), bytes);
      in_use -= bytes;
      taken[at] = taken.back();
      taken.pop_back();
    }
    ASSERT_LE(in_use, heap.region_bytes());
  }
  for (const Taken& block : taken)
    heap.give_back(address(block.begin));
  EXPECT_EQ(heap.take(4000), address(1 << 20));
  EXPECT_EQ(heap.take(1000), address(1 << 22));
}

}   // namespace
}   // namespace pumice
