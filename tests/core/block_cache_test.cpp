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
  EXPECT_TRUE(cache.keep(address(4096), 100, &first));
  EXPECT_EQ(cache.bytes(), 512u);
  EXPECT_EQ(cache.take(100, &second), nullptr);
  EXPECT_EQ(cache.take(513, &first), nullptr);
  EXPECT_EQ(cache.take(512, &first), address(4096));
  EXPECT_EQ(cache.take(512, &first), nullptr);
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(BlockCache, SizesAreRoundedUpByAnEighthAtMost) {
  EXPECT_EQ(BlockCache::rounded(1), 512u);
  EXPECT_EQ(BlockCache::rounded(512), 512u);
  EXPECT_EQ(BlockCache::rounded(513), 1024u);
  EXPECT_EQ(BlockCache::rounded(65'537), 65'536u + 8192u);
  EXPECT_EQ(BlockCache::rounded(BlockCache::kLargest), BlockCache::kLargest);
  std::mt19937 random(1);
  std::uniform_int_distribution<std::size_t> sizes(1, BlockCache::kLargest);
  for (int i = 0; i < 10'000; ++i) {
    const std::size_t bytes = sizes(random);
    const std::size_t rounded = BlockCache::rounded(bytes);
    EXPECT_GE(rounded, bytes);
    EXPECT_LE(rounded, bytes + std::max<std::size_t>(512, bytes / 8)) << bytes;
    EXPECT_EQ(rounded % 512, 0u);
    EXPECT_EQ(BlockCache::rounded(rounded), rounded);   // a block fits what it was rounded for
  }
}

TEST(BlockCache, ItKeepsSoMuchAndGivesAllOfItBack) {
  BlockCache cache;
  const int stream = 0;
  std::set<void*> kept;
  std::uintptr_t next = 4096;
  while (cache.keep(address(next), BlockCache::kLargest, &stream)) {
    kept.insert(address(next));
    next += BlockCache::kLargest;
  }
  EXPECT_EQ(cache.bytes(), BlockCache::kMost);
  EXPECT_FALSE(cache.keep(address(next), 1, &stream));
  const std::vector<void*> all = cache.release();
  EXPECT_EQ(std::set<void*>(all.begin(), all.end()), kept);
  EXPECT_EQ(cache.bytes(), 0u);
  EXPECT_EQ(cache.take(BlockCache::kLargest, &stream), nullptr);
}

}   // namespace
}   // namespace pumice
