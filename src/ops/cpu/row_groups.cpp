// A stable counting sort in two steps: into at most 1024 buckets of neighbouring rows, then each
// bucket by itself, where its counters fit in L1 or L2.
#include "ops/cpu/row_groups.hpp"

#include <algorithm>
#include <atomic>
#include <string>
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

template <class Row>
Buffer<std::int64_t> invert_rows(std::span<const Row> rows, std::int64_t groups) {
  Buffer<std::int64_t> inverse(groups);
  parallel_for(groups, kChunk, [&](std::int64_t begin, std::int64_t end) {
    std::fill(inverse.data() + begin, inverse.data() + end, -1);
  });
  std::atomic<bool> repeats{false};
  parallel_for(static_cast<std::int64_t>(rows.size()), kChunk,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const auto row = rows[static_cast<std::size_t>(i)];
                   if (row < 0) continue;
                   const std::atomic_ref<std::int64_t> slot(inverse[row]);
                   if (slot.exchange(i, std::memory_order_relaxed) >= 0) repeats = true;
                 }
               });
  if (repeats) return {};
  return inverse;
}
template Buffer<std::int64_t> invert_rows(std::span<const std::int32_t>, std::int64_t);
template Buffer<std::int64_t> invert_rows(std::span<const std::int64_t>, std::int64_t);

void BadRows::refuse(std::int64_t element, std::int64_t row, std::int64_t limit, const char* op,
                     const char* name, std::int64_t columns) {
  const std::string place =
      columns == 1 ? std::to_string(element)
                   : std::to_string(element / columns) + ", " + std::to_string(element % columns);
  detail::raise_user(op, ": ", name, "[", place, "] = ", row, " is not a row; rows are 0 to ",
                     limit - 1, ", or -1 for none");
}

namespace {

template <class Row>
void check_all(std::span<const Row> rows, std::int64_t limit, const char* op, const char* name,
               std::int64_t columns) {
  BadRows bad;
  parallel_for(static_cast<std::int64_t>(rows.size()), kChunk,
               [&](std::int64_t begin, std::int64_t end) {
                 const auto is_good = [&](std::int64_t i) {
                   const auto row = rows[static_cast<std::size_t>(i)];
                   return row >= -1 && row < limit;
                 };
                 bool good = true;
                 for (std::int64_t i = begin; i < end; ++i)
                   good &= is_good(i);
                 if (good) return;
                 while (is_good(begin))
                   ++begin;
                 bad.note(begin);
               });
  bad.raise(rows, limit, op, name, columns);
}

}   // namespace

void check_rows(ConstTensorView rows, std::int64_t limit, const char* op, const char* name) {
  PUMICE_EXPECTS(rows.rank() == 1, op, ": ", name, " has shape ", to_string(rows.shape()),
                 "; it must be a vector of row numbers");
  PUMICE_EXPECTS(rows.dtype() == DType::i32 || rows.dtype() == DType::i64, op, ": ", name,
                 " holds ", name_of(rows.dtype()), "; row numbers are i32 or i64");
  if (rows.device().kind == DeviceKind::cuda) return;   // kernels see the numbers, nobody waits
  dispatch_rows(rows, [&](auto values) { check_all(values, limit, op, name, 1); });
}

void check_row_table(ConstTensorView rows, std::int64_t limit, const char* op, const char* name) {
  check_all(rows.span<std::int32_t>(), limit, op, name, rows.row_elements());
}

}   // namespace pumice::cpu
