// Mean and variance of columns in one pass over the features.
//
//    a thread: Chan over a few rows at     a block: Chan over its lanes       who needs them:
//    a time, n, mean, M2 in fp32     ──▶   the same, in shared memory   ──▶   over shares, in fp64
//
// Neither subtracts large sums from each other: the variance of values far from 0 keeps its digits.
#pragma once

#include <pumice/ops/column_walk.h>

namespace pumice {

/// Moments of what a thread, or a tree of lanes, has seen.
struct LaneMoments {
  float count[kColumnThreads];
  float mean[kColumnThreads * kColumnVector];
  float square[kColumnThreads * kColumnVector];   // Σ (x − mean)²
};

/// Adds the moments of thread `from` to those of thread `to` (Chan et al.).
template <int32_t kCount>
PUMICE_DEVICE void add_moments(LaneMoments& of, int32_t to, int32_t from) {
  const float count = of.count[to] + of.count[from];
  if (of.count[from] == 0.0f) return;
  const float share = of.count[from] / count;
  const float weight = of.count[to] * share;
  PUMICE_UNROLL
  for (int32_t i = 0; i < kCount; ++i) {
    const int32_t a = to * kCount + i, b = from * kCount + i;
    const float delta = of.mean[b] - of.mean[a];
    of.mean[a] += delta * share;
    of.square[a] += of.square[b] + delta * delta * weight;
  }
  of.count[to] = count;
}

struct ColumnMoments {
  template <class Access>
  PUMICE_DEVICE static void run(const MomentArguments& a, const BlockShare& of,
                                LaneMoments& lanes) {
    constexpr int32_t kCount = Access::kCount;
    const ColumnWalk<kCount> walk(a.shape, of);
    float count = 0.0f;
    typename Access::Chunk mean, square;
    fill(mean, 0.0f);
    fill(square, 0.0f);
    typename Access::Chunk x[static_cast<unsigned>(Access::kRows)];
    walk.template for_row_batches<Access::kRows>(
        [&](int32_t at, int64_t row) {
          Access::load(a.in, row * a.shape.channels + walk.channel(), x[at]);
        },
        [&](const int64_t*, int32_t rows) {
          const float more = static_cast<float>(rows);
          const float share_of_one = 1.0f / more;
          const float share = more / (count + more);
          const float weight = count * share;
          PUMICE_UNROLL
          for (int32_t i = 0; i < kCount; ++i) {
            float sum = 0.0f;
            PUMICE_UNROLL
            for (int32_t at = 0; at < Access::kRows; ++at)
              sum += at < rows ? x[at][i] : 0.0f;
            const float center = sum * share_of_one;
            float distance = 0.0f;
            PUMICE_UNROLL
            for (int32_t at = 0; at < Access::kRows; ++at) {
              const float from = at < rows ? x[at][i] - center : 0.0f;
              distance += from * from;
            }
            const float delta = center - mean[i];
            mean[i] += delta * share;
            square[i] += distance + delta * delta * weight;
          }
          count += more;
        });
    const int32_t mine = thread_index();
    lanes.count[mine] = count;
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i) {
      lanes.mean[mine * kCount + i] = mean[i];
      lanes.square[mine * kCount + i] = square[i];
    }
    walk.combine_lanes([&](int32_t to, int32_t from) { add_moments<kCount>(lanes, to, from); });
    if (walk.lane() != 0) return;
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i) {
      a.partial[walk.partial(0) + i] = lanes.mean[mine * kCount + i];
      a.partial[walk.partial(1) + i] = lanes.square[mine * kCount + i];
    }
  }
};

// Content with one block at once; left alone, the assembler aims at two for sm_120 and spills.
PUMICE_KERNEL PUMICE_THREADS(kColumnThreads,
                             1) void column_moments(PUMICE_ARGUMENT(MomentArguments) a) {
  wait_for_previous();
  PUMICE_BLOCK_SHARED(LaneMoments, lanes);
  const BlockShare of = share_of_block(a.shape);
  if (!of.there()) return;
  with_access<ColumnMoments>(a.shape.type, a.shape.channels, a, of, lanes);
}

}   // namespace pumice
