// What was given back is handed out again: on its own stream, for its own size, up to a limit.
#include <pumice/core/block_cache.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace pumice {
namespace {

void* address(std::uintptr_t value) {
  return reinterpret_cast<void*>(value);
}

TEST(BlockCache, ABlockServesItsOwnSizeOnItsOwnStreamOnce) {
  BlockCache cache;
  const int first = 0, second = 0;
  EXPECT_EQ(cache.take(100, &first), nullptr);
  EXPECT_TRUE(cache.keep(address(4096), 100, &first).empty());
  EXPECT_EQ(cache.bytes(), 512u);
  EXPECT_EQ(cache.take(100, &second), nullptr);
  EXPECT_EQ(cache.take(513, &first), nullptr);
  EXPECT_EQ(cache.take(512, &first), address(4096));
  EXPECT_EQ(cache.take(512, &first), nullptr);
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(BlockCache, SizesAreRoundedUpByAQuarterAtMost) {
  EXPECT_EQ(BlockCache::rounded(1), 512u);
  EXPECT_EQ(BlockCache::rounded(512), 512u);
  EXPECT_EQ(BlockCache::rounded(513), 1024u);
  EXPECT_EQ(BlockCache::rounded(65'537), 65'536u + 16'384u);
  EXPECT_EQ(BlockCache::rounded(BlockCache::kLargest), BlockCache::kLargest);
  std::mt19937 random(1);
  std::uniform_int_distribution<std::size_t> sizes(1, BlockCache::kLargest);
  for (int i = 0; i < 10'000; ++i) {
    const std::size_t bytes = sizes(random);
    const std::size_t rounded = BlockCache::rounded(bytes);
    EXPECT_GE(rounded, bytes);
    EXPECT_LE(rounded, bytes + std::max<std::size_t>(512, bytes / 4)) << bytes;
    EXPECT_EQ(rounded % 512, 0u);
    EXPECT_EQ(BlockCache::rounded(rounded), rounded);   // a block fits what it was rounded for
  }
}

TEST(BlockCache, ItKeepsSoMuchAndGivesAllOfItBack) {
  BlockCache cache;
  const int stream = 0;
  std::multiset<void*> kept;
  constexpr std::uintptr_t kBlocks = BlockCache::kMost / BlockCache::kLargest;
  for (std::uintptr_t i = 1; i <= kBlocks; ++i) {
    EXPECT_TRUE(
        cache.keep(address(i * BlockCache::kLargest), BlockCache::kLargest, &stream).empty());
    kept.insert(address(i * BlockCache::kLargest));
  }
  EXPECT_EQ(cache.bytes(), BlockCache::kMost);
  const std::vector<void*> going = cache.keep(address(512), 1, &stream);
  ASSERT_EQ(going.size(), 1u);
  kept.insert(address(512));
  kept.erase(going.front());
  EXPECT_LE(cache.bytes(), BlockCache::kMost);
  const std::vector<void*> all = cache.release();
  EXPECT_EQ(std::multiset<void*>(all.begin(), all.end()), kept);
  EXPECT_EQ(cache.bytes(), 0u);
  EXPECT_EQ(cache.take(BlockCache::kLargest, &stream), nullptr);
}

TEST(BlockCache, SizesThatNobodyAsksForMakeRoom) {
  BlockCache cache;
  const int old_stream = 0, stream = 0;
  constexpr std::size_t kOld = 1 << 20, kNew = 3 << 19;
  std::uintptr_t next = 0;
  for (std::size_t i = 0; i < BlockCache::kMost / kOld; ++i)
    cache.keep(address(next += 4096), kOld, &old_stream);
  constexpr int kAtOnce = 20;   // 30 MiB
  int found = 0;
  for (int pass = 0; pass < 3; ++pass) {
    std::vector<void*> taken;
    for (int i = 0; i < kAtOnce; ++i) {
      void* block = cache.take(kNew, &stream);
      found += block != nullptr ? 1 : 0;
      taken.push_back(block != nullptr ? block : address(next += 4096));
    }
    for (void* block : taken)
      cache.keep(block, kNew, &stream);
    EXPECT_LE(cache.bytes(), BlockCache::kMost);
  }
  EXPECT_EQ(found, 2 * kAtOnce);   // all but the first time
}

TEST(BlockCache, OneOfLargerBlocksKeepsAsMuchAsItIsTold) {
  constexpr std::size_t kBlock = std::size_t{24} << 20, kMost = std::size_t{100} << 20;
  BlockCache cache(kMost);
  const int stream = 0;
  for (std::uintptr_t i = 1; i <= 4; ++i)
    EXPECT_TRUE(cache.keep(address(i * kBlock), kBlock, &stream).empty());
  EXPECT_EQ(cache.bytes(), 4 * kBlock);
  EXPECT_EQ(cache.keep(address(5 * kBlock), kBlock, &stream).size(), 1u);
  EXPECT_EQ(cache.bytes(), 4 * kBlock);
  EXPECT_EQ(cache.take(1, &stream), nullptr);
  EXPECT_NE(cache.take(kBlock - (std::size_t{3} << 20), &stream), nullptr);
  EXPECT_EQ(BlockCache(0).keep(address(kBlock), kBlock, &stream).size(), 1u);
}

}   // namespace
}   // namespace pumice
