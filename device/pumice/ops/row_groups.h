// Rows that fall together: a stable sort of a list by the rows it names turns scattered additions
// into sums that have one owner each, the same bits every time.
//
//    rows     2 0 2 -1 0         begin     0 2 2 4      group 0: positions 1 4
//    sorted   0 0 2 2 (none)  ─▶ position  1 4 0 2 3    group 1: none,  group 2: positions 0 2
#pragma once

#include <pumice/ops/column_walk.h>
#include <pumice/ops/row_list.h>
#include <pumice/thread/search.h>

namespace pumice {

PUMICE_KERNEL PUMICE_THREADS(kRowThreads) void key_rows(PUMICE_ARGUMENT(RowKeyArguments) a) {
  wait_for_previous();
  const int64_t i = global_thread_index();
  if (i >= a.rows.size) return;
  const int64_t row = listed_row(a.rows, i);
  const uint32_t key = static_cast<uint32_t>(row < 0 ? a.rows.limit : row);
  a.keys[i] = key;
}

/// One thread a bound, by bisection.
PUMICE_KERNEL PUMICE_THREADS(kRowThreads) void bound_groups(PUMICE_ARGUMENT(GroupBoundArguments)
                                                                a) {
  wait_for_previous();
  const int64_t group = global_thread_index();
  if (group > a.groups) return;
  a.begin[group] = static_cast<int32_t>(first_not_below(a.keys, a.size, group));
}

/// A thread has a chunk of channels of a group. Sums are in fp64, as the CPU's.
struct ReduceGroup {
  template <class Access>
  PUMICE_DEVICE static void run(const GroupArguments& a, const int64_t& index) {
    constexpr int32_t kCount = Access::kCount;
    const int32_t chunks = a.channels / kCount;
    const int64_t group = index / chunks;
    if (group >= a.groups.groups) return;
    const int32_t channel = static_cast<int32_t>(index - group * chunks) * kCount;
    const int32_t begin = a.groups.begin[group], end = a.groups.begin[group + 1];
    const int64_t to = group * a.channels + channel;
    if (a.result == GroupResult::max) return largest<Access>(a, begin, end, channel, to);
    double sum[static_cast<unsigned>(kCount)];
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i)
      sum[i] = 0.0;
    for (int32_t j = begin; j < end; ++j) {
      const int64_t position = a.groups.position[j];
      const double weight = weight_at(a.weights, a.wide_weights, position);
      typename Access::Chunk x;
      Access::load(a.in, position / a.per * a.channels + channel, x);
      PUMICE_UNROLL
      for (int32_t i = 0; i < kCount; ++i)
        sum[i] += static_cast<double>(x[i]) * weight;
    }
    const double divisor = a.result == GroupResult::mean && end - begin > 1 ? end - begin : 1;
    typename Access::Chunk value;
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i)
      value[i] = static_cast<float>(sum[i] / divisor);
    Access::store(a.out, to, value);
  }

 private:
  template <class Access>
  PUMICE_DEVICE static void largest(const GroupArguments& a, int32_t begin, int32_t end,
                                    int32_t channel, int64_t to) {
    constexpr int32_t kCount = Access::kCount;
    typename Access::Chunk value, x;
    int32_t from[static_cast<unsigned>(kCount)];
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i) {
      value[i] = 0.0f;
      from[i] = -1;
    }
    for (int32_t j = begin; j < end; ++j) {
      const int64_t position = a.groups.position[j];
      Access::load(a.in, position * a.channels + channel, x);
      PUMICE_UNROLL
      for (int32_t i = 0; i < kCount; ++i) {
        // The first, what is above the largest so far, and the first NaN.
        const bool takes = from[i] < 0 || (!(x[i] <= value[i]) && value[i] == value[i]);
        value[i] = takes ? x[i] : value[i];
        from[i] = takes ? static_cast<int32_t>(position) : from[i];
      }
    }
    Access::store(a.out, to, value);
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i)
      a.source[to + i] = from[i];
  }
};

// Asking for four blocks at once frees 64 registers a thread; left alone, the assembler spills.
PUMICE_KERNEL PUMICE_THREADS(kRowThreads, 4) void reduce_groups(PUMICE_ARGUMENT(GroupArguments) a) {
  wait_for_previous();
  const int64_t index = global_thread_index();
  with_access<ReduceGroup>(a.type, a.channels, a, index);
}

PUMICE_KERNEL PUMICE_THREADS(kRowThreads) void first_of_groups(PUMICE_ARGUMENT(FirstArguments) a) {
  wait_for_previous();
  const int64_t group = global_thread_index();
  if (group >= a.groups.groups) return;
  const int32_t begin = a.groups.begin[group];
  a.source[group] =
      begin < a.groups.begin[group + 1] ? static_cast<int32_t>(a.groups.position[begin]) : -1;
}

struct ReducedGradient {
  template <class Access>
  PUMICE_DEVICE static void run(const ReducedGradientArguments& a, const int64_t& index) {
    constexpr int32_t kCount = Access::kCount;
    const int32_t chunks = a.channels / kCount;
    const int64_t position = index / chunks;
    if (position >= a.rows.size) return;
    const int32_t channel = static_cast<int32_t>(index - position * chunks) * kCount;
    const int64_t row = listed_row(a.rows, position);
    typename Access::Chunk value;
    fill(value, row == kNotARow ? quiet_nan() : 0.0f);
    if (row >= 0) {
      Access::load(a.grad, row * a.channels + channel, value);
      const float divisor =
          a.begin == nullptr ? 1.0f : static_cast<float>(a.begin[row + 1] - a.begin[row]);
      PUMICE_UNROLL
      for (int32_t i = 0; i < kCount; ++i) {
        if (a.begin != nullptr) value[i] /= divisor;
        if (a.source == nullptr) continue;
        const int32_t chosen =
            a.by_channel ? a.source[row * a.channels + channel + i] : a.source[row];
        if (int64_t{chosen} != position) value[i] = 0.0f;
      }
    }
    Access::store(a.out, position * a.channels + channel, value);
  }
};

PUMICE_KERNEL PUMICE_THREADS(kRowThreads) void reduced_gradient(
    PUMICE_ARGUMENT(ReducedGradientArguments) a) {
  wait_for_previous();
  const int64_t index = global_thread_index();
  with_access<ReducedGradient>(a.type, a.channels, a, index);
}

}   // namespace pumice
