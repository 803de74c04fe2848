// The device's radix sort beside std::stable_sort.
#include "coords/cuda/radix_sort.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/random.hpp>

#include "support/kernel_engines.hpp"
#include "support/message_of.hpp"

namespace pumice::test {
namespace {

template <class Key> struct Pairs {
  std::vector<Key> keys;
  std::vector<std::uint32_t> values;
};

template <class Key> Pairs<Key> stable_sorted(const std::vector<Key>& keys) {
  std::vector<std::uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
  Pairs<Key> sorted;
  for (const std::uint32_t i : order) {
    sorted.keys.push_back(keys[i]);
    sorted.values.push_back(i);
  }
  return sorted;
}

template <class Key> std::vector<Key> random_keys(std::int64_t size, int bits, Random& random) {
  std::vector<Key> keys(static_cast<std::size_t>(size));
  for (Key& key : keys)
    key = static_cast<Key>(bits == 0 ? 0 : random.bits() >> (64 - bits));
  return keys;
}

/// Sorts the first `keys.size()` of `capacity` pairs; the device knows the number, the host not.
template <class Key>
Pairs<Key> device_sorted(const std::vector<Key>& keys, std::int64_t capacity, int bits,
                         TestRunner& runner) {
  const auto size = static_cast<std::int64_t>(keys.size());
  const auto count = runner.count(size);
  cuda::FillList fill;
  cuda::RadixSort<Key> sort(runner, {capacity, bits}, fill);
  fill.run(runner);
  std::copy(keys.begin(), keys.end(), sort.keys());
  sort.run(runner, {count.data(), capacity});
  return {{sort.sorted_keys(), sort.sorted_keys() + size},
          {sort.sorted_values(), sort.sorted_values() + size}};
}

template <class Key>
void expect_sorted(const RunnerMaker& make_runner, std::int64_t size, std::int64_t capacity,
                   int bits) {
  SCOPED_TRACE(::testing::Message() << size << " of " << capacity << ", " << bits << " bits");
  Random random(static_cast<std::uint64_t>(size + bits));
  const auto keys = random_keys<Key>(size, bits, random);
  const auto expected = stable_sorted(keys);
  const auto runner = make_runner();
  const auto sorted = device_sorted(keys, capacity, bits, *runner);
  EXPECT_EQ(sorted.keys, expected.keys);
  EXPECT_EQ(sorted.values, expected.values);
}

PUMICE_DEVICE_TEST(DeviceRadixSort, SortsLikeStableSort) {
  for (const std::int64_t size : {0, 1, 31, 33, 1023, 1025, 4091, 4092, 5000}) {
    for (const int bits : {1, 8, 9, 42, 63})
      expect_sorted<std::uint64_t>(make_runner, size, size + 5, bits);
    for (const int bits : {3, 17, 32})
      expect_sorted<std::uint32_t>(make_runner, size, size, bits);
  }
}

PUMICE_LARGE_DEVICE_TEST(DeviceRadixSort, SortsALargeInput) {
  expect_sorted<std::uint64_t>(make_runner, 65537, 65537, 42);
  expect_sorted<std::uint32_t>(make_runner, 65537, 70000, 31);
}

PUMICE_DEVICE_TEST(DeviceRadixSort, ACapacityFarAboveTheCountChangesNothing) {
  expect_sorted<std::uint64_t>(make_runner, 3000, 100000, 20);
}

PUMICE_LARGE_DEVICE_TEST(DeviceRadixSort, ManyTilesLookBackThroughMoreThanOneWindow) {
  const std::int64_t size = 40 * kSortTile + 77;
  expect_sorted<std::uint32_t>(make_runner, size, size, 11);
  expect_sorted<std::uint32_t>(make_runner, 5000, size, 11);
}

PUMICE_DEVICE_TEST(DeviceRadixSort, EqualDigitsKeepTheirOrder) {
  const auto runner = make_runner();
  const std::vector<std::uint64_t> keys(3 * kSmallSort, 5);
  const auto sorted = device_sorted(keys, 3 * kSmallSort, 20, *runner);
  EXPECT_TRUE(std::is_sorted(sorted.values.begin(), sorted.values.end()));
}

PUMICE_DEVICE_TEST(DeviceRadixSort, SegmentsAreSortedSideBySideAndEndAfterTheirOwnPasses) {
  struct Segment {
    std::int64_t size;
    std::int64_t capacity;
    int bits;
  };
  const std::vector<Segment> few{{700, 700, 8}, {0, 33, 27}, {4000, 4096, 19}};
  const std::vector<Segment> many{{5000, 9000, 8}, {2049, 2049, 27}, {0, 6000, 30},
                                  {31, 40, 1},     {4097, 4200, 9},  {1, 5000, 32}};
  for (const auto& segments : {few, many}) {
    const auto runner = make_runner();
    std::vector<cuda::SortRoom> rooms;
    for (const Segment& segment : segments)
      rooms.push_back({segment.capacity, segment.bits});
    cuda::FillList fill;
    cuda::RadixSort<std::uint32_t> sort(*runner, rooms, fill);
    fill.run(*runner);
    Random random(7);
    std::vector<Pairs<std::uint32_t>> expected;
    std::vector<Buffer<std::int64_t>> counts;
    std::vector<RowCountRef> rows;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const auto keys = random_keys<std::uint32_t>(segments[i].size, segments[i].bits, random);
      std::copy(keys.begin(), keys.end(), sort.keys(i));
      expected.push_back(stable_sorted(keys));
      counts.push_back(runner->count(segments[i].size));
      rows.push_back({counts.back().data(), segments[i].capacity});
    }
    sort.run(*runner, rows);
    for (std::size_t i = 0; i < segments.size(); ++i) {
      SCOPED_TRACE(i);
      const std::span keys(sort.sorted_keys(i), expected[i].keys.size());
      const std::span values(sort.sorted_values(i), expected[i].values.size());
      EXPECT_TRUE(std::ranges::equal(keys, expected[i].keys));
      EXPECT_TRUE(std::ranges::equal(values, expected[i].values));
    }
  }
}

PUMICE_DEVICE_TEST(DeviceRadixSort, APassIsOneLaunchAndAFewKeysAreOneInAll) {
  const auto launches = [&](std::int64_t size) {
    const auto runner = make_runner();
    device_sorted(std::vector<std::uint64_t>(static_cast<std::size_t>(size), 5), size, 42, *runner);
    return runner->launches().size();
  };
  EXPECT_EQ(launches(kSmallSort), 1u);
  EXPECT_EQ(launches(kSmallSort + 1), 1u + 1u + 5u);   // fill, count, passes
}

PUMICE_DEVICE_TEST(DeviceRadixSort, MoreRowsThanItsSumsHoldAreRefused) {
  const auto runner = make_runner();
  cuda::FillList fill;
  const auto sort = [&] {
    cuda::RadixSort<std::uint64_t>(*runner, {std::int64_t{1} << 30, 42}, fill);
  };
  EXPECT_EQ(
      message_of(sort),
      "a sort of 1073741824 rows; on a device the most is 1073741823, so take fewer points or "
      "a smaller batch");
}

PUMICE_DEVICE_TEST(DeviceRadixSort, APoisonedCountSortsNothing) {
  const auto runner = make_runner();
  cuda::FillList fill;
  cuda::RadixSort<std::uint64_t> sort(*runner, {100, 8}, fill);
  fill.run(*runner);
  constexpr std::uint64_t kKey = 0x123456789abcdef0;
  std::fill_n(const_cast<std::uint64_t*>(sort.sorted_keys()), 100, ~kKey);   // whatever lay there
  std::fill_n(sort.keys(), 100, kKey);
  const auto needed = runner->count(101);
  sort.run(*runner, {needed.data(), 100});
  EXPECT_EQ(std::count(sort.sorted_keys(), sort.sorted_keys() + 100, ~kKey), 100);
  EXPECT_EQ(runner->record().code, kFine);   // to be said by who counted
}

}   // namespace
}   // namespace pumice::test
