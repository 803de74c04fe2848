// A stable counting sort in two steps: into at most 1024 buckets of neighbouring rows, then each
// bucket by itself, where its counters fit in L1 or L2.
#include "core/row_groups.hpp"

#include <algorithm>
#include <vector>

#include <pumice/core/parallel.hpp>

namespace pumice::cpu {
namespace {

constexpr std::int64_t kChunk = 1 << 15;   // positions a task
constexpr std::int64_t kBuckets = 1024;

template <class Row> RowGroups group(std::span<const Row> rows, std::int64_t groups) {
  const auto size = static_cast<std::int64_t>(rows.size());
  int shift = 0;
  while (groups > kBuckets << shift)
    ++shift;
  const std::int64_t buckets = groups == 0 ? 0 : ((groups - 1) >> shift) + 1;
  const std::int64_t chunks = (size + kChunk - 1) / kChunk;

  Buffer<std::int64_t> cursor(chunks * buckets);   // of bucket b in chunk c: [c * buckets + b]
  std::fill(cursor.span().begin(), cursor.span().end(), 0);
  parallel_for(size, kChunk, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t* count = cursor.data() + begin / kChunk * buckets;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto row = rows[static_cast<std::size_t>(i)];
      if (row >= 0) ++count[row >> shift];
    }
  });
  std::vector<std::int64_t> bucket_begin(static_cast<std::size_t>(buckets) + 1);
  std::int64_t kept = 0;
  for (std::int64_t bucket = 0; bucket < buckets; ++bucket) {
    bucket_begin[static_cast<std::size_t>(bucket)] = kept;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const std::int64_t count = cursor[chunk * buckets + bucket];
      cursor[chunk * buckets + bucket] = kept;
      kept += count;
    }
  }
  bucket_begin[static_cast<std::size_t>(buckets)] = kept;

  Buffer<std::int64_t> bucketed(kept);
  parallel_for(size, kChunk, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t* next = cursor.data() + begin / kChunk * buckets;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto row = rows[static_cast<std::size_t>(i)];
      if (row >= 0) bucketed[next[row >> shift]++] = i;
    }
  });

  RowGroups result{Buffer<std::int64_t>(groups + 1), Buffer<std::int64_t>(kept)};
  result.begin[groups] = kept;
  const std::int64_t grain = std::max<std::int64_t>(1, buckets / 64);
  parallel_for(buckets, grain, [&](std::int64_t first_bucket, std::int64_t last_bucket) {
    std::vector<std::int64_t> next(std::size_t{1} << shift);
    for (std::int64_t bucket = first_bucket; bucket < last_bucket; ++bucket) {
      const std::int64_t low = bucket << shift;
      const std::int64_t high = std::min(groups, low + (std::int64_t{1} << shift));
      const std::int64_t begin = bucket_begin[static_cast<std::size_t>(bucket)];
      const std::int64_t end = bucket_begin[static_cast<std::size_t>(bucket) + 1];
      std::fill(next.begin(), next.end(), 0);
      for (std::int64_t i = begin; i < end; ++i) {
        ++next[static_cast<std::size_t>(rows[static_cast<std::size_t>(bucketed[i])] - low)];
      }
      std::int64_t place = begin;
      for (std::int64_t row = low; row < high; ++row) {
        const std::int64_t count = next[static_cast<std::size_t>(row - low)];
        result.begin[row] = next[static_cast<std::size_t>(row - low)] = place;
        place += count;
      }
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t position = bucketed[i];
        const auto local = static_cast<std::size_t>(rows[static_cast<std::size_t>(position)] - low);
        result.position[next[local]++] = position;
      }
    }
  });
  return result;
}

}   // namespace

RowGroups group_rows(std::span<const std::int32_t> rows, std::int64_t groups) {
  return group(rows, groups);
}
RowGroups group_rows(std::span<const std::int64_t> rows, std::int64_t groups) {
  return group(rows, groups);
}

}   // namespace pumice::cpu
