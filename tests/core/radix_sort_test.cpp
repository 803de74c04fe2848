// The sort of keys with values: right, stable, and the same for any number of threads.
#include <pumice/core/radix_sort.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/parallel.hpp>
#include <pumice/core/random.hpp>

namespace pumice {
namespace {

struct Sorted {
  std::vector<std::uint64_t> keys;
  std::vector<std::int32_t> values;
  friend bool operator==(const Sorted&, const Sorted&) = default;
};

Sorted radix_sorted(std::vector<std::uint64_t> keys, int bits) {
  std::vector<std::int32_t> values(keys.size());
  std::iota(values.begin(), values.end(), 0);
  radix_sort_pairs(keys, values, bits);
  return {keys, values};
}

Sorted stably_sorted(const std::vector<std::uint64_t>& keys) {
  Sorted sorted;
  sorted.values.resize(keys.size());
  std::iota(sorted.values.begin(), sorted.values.end(), 0);
  const auto key = [&](std::int32_t i) { return keys[static_cast<std::size_t>(i)]; };
  std::stable_sort(sorted.values.begin(), sorted.values.end(),
                   [&](std::int32_t a, std::int32_t b) { return key(a) < key(b); });
  for (const std::int32_t i : sorted.values)
    sorted.keys.push_back(key(i));
  return sorted;
}

std::vector<std::uint64_t> random_keys(std::size_t size, std::uint64_t mask, Random& random) {
  std::vector<std::uint64_t> keys(size);
  for (auto& key : keys)
    key = random.bits() & mask;
  return keys;
}

TEST(RadixSort, IsAStableSortForEverySizeAndWidth) {
  Random random(1);
  for (const std::size_t size : {0u, 1u, 2u, 31u, 33u, 1000u, 65537u}) {
    for (const int bits : {1, 3, 8, 9, 33, 63, 64}) {
      const std::uint64_t mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
      const auto keys = random_keys(size, mask, random);
      EXPECT_EQ(radix_sorted(keys, bits), stably_sorted(keys))
          << size << " keys, " << bits << " bits";
    }
  }
}

TEST(RadixSort, SkipsBitsThatAllKeysShare) {
  Random random(2);
  auto keys = random_keys(5000, 0x00f0000000003c00u, random);
  for (auto& key : keys)
    key |= 0x4000000000000001u;
  EXPECT_EQ(radix_sorted(keys, 63), stably_sorted(keys));
  const std::vector<std::uint64_t> same(5000, 77);
  EXPECT_EQ(radix_sorted(same, 63), stably_sorted(same));
}

TEST(RadixSort, LooksAtTheLowBitsOnly) {
  const std::vector<std::uint64_t> keys{0x103, 0x102, 0x101};
  EXPECT_EQ(radix_sorted(keys, 0).keys, keys);
  EXPECT_EQ(radix_sorted(keys, 1).values, (std::vector<std::int32_t>{1, 0, 2}));
  EXPECT_EQ(radix_sorted(keys, 2).values, (std::vector<std::int32_t>{2, 1, 0}));
}

TEST(RadixSort, CarriesAnyValue) {
  Random random(4);
  for (const std::uint64_t mask : {0xffull, 0xffffffffull, 0x7fffffffffffffffull}) {
    auto keys = random_keys(40000, mask, random);
    std::vector<std::int32_t> values;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      values.push_back(static_cast<std::int32_t>(random.bits()));   // half of them negative
    }
    const auto sorted = stably_sorted(keys);
    std::vector<std::int32_t> expected;
    for (const std::int32_t i : sorted.values)
      expected.push_back(values[static_cast<std::size_t>(i)]);
    radix_sort_pairs(keys, values, 63);
    EXPECT_EQ(keys, sorted.keys);
    EXPECT_EQ(values, expected);
  }
}

TEST(RadixSort, GivesTheSameForAnyNumberOfThreads) {
  Random random(3);
  const auto keys = random_keys(200000, 0xffff, random);   // many repeat
  const Sorted expected = stably_sorted(keys);
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    EXPECT_EQ(radix_sorted(keys, 16), expected) << count << " threads";
  }
  set_threads(0);
}

}   // namespace
}   // namespace pumice
