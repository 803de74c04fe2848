// The largest value of each column among the rows of an item, and the row it came from: among
// equals the smallest row, whatever the order of positions; a NaN before every number.
#pragma once

#include <pumice/ops/column_walk.h>
#include <pumice/ops/row_list.h>

namespace pumice {

/// Largest values so far, and their rows; -1 where nothing was seen.
struct LaneMaxima {
  float value[kColumnThreads * kColumnVector];
  int32_t row[kColumnThreads * kColumnVector];
};

PUMICE_DEVICE bool is_nan(float value) {
  return !(value == value);
}

/// Whether `value` of `row` goes before what is there.
PUMICE_DEVICE bool goes_before(float value, int32_t row, float other, int32_t other_row) {
  if (row < 0) return false;
  if (other_row < 0) return true;
  if (is_nan(value) != is_nan(other)) return is_nan(value);
  return value > other || (!(value < other) && row < other_row);
}

PUMICE_DEVICE void keep_larger(float& value, int32_t& row, float other, int32_t other_row) {
  if (!goes_before(other, other_row, value, row)) return;
  value = other;
  row = other_row;
}

struct ColumnMaxima {
  template <class Access>
  PUMICE_DEVICE static void run(const MaximumArguments& a, const BlockShare& of,
                                LaneMaxima& lanes) {
    constexpr int32_t kCount = Access::kCount;
    const ColumnWalk<kCount> walk(a.shape, of);
    const int32_t mine = thread_index();
    typename Access::Chunk value;
    int32_t from[static_cast<unsigned>(kCount)];
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i) {
      value[i] = 0.0f;
      from[i] = -1;
    }
    walk.for_rows([&](int64_t row) {
      typename Access::Chunk x;
      Access::load(a.in, row * a.shape.channels + walk.channel(), x);
      PUMICE_UNROLL
      for (int32_t i = 0; i < kCount; ++i)
        keep_larger(value[i], from[i], x[i], static_cast<int32_t>(row));
    });
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i) {
      lanes.value[mine * kCount + i] = value[i];
      lanes.row[mine * kCount + i] = from[i];
    }
    walk.combine_lanes([&](int32_t to, int32_t other) {
      PUMICE_UNROLL
      for (int32_t i = 0; i < kCount; ++i)
        keep_larger(lanes.value[to * kCount + i], lanes.row[to * kCount + i],
                    lanes.value[other * kCount + i], lanes.row[other * kCount + i]);
    });
    if (walk.lane() != 0) return;
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i) {
      a.value[walk.partial(0) + i] = lanes.value[mine * kCount + i];
      a.row[walk.partial(0) + i] = lanes.row[mine * kCount + i];
    }
  }
};

// Asking for two blocks at once frees registers; left alone, the assembler aims at 32 for sm_100.
PUMICE_KERNEL PUMICE_THREADS(kColumnThreads,
                             2) void column_maxima(PUMICE_ARGUMENT(MaximumArguments) a) {
  wait_for_previous();
  PUMICE_BLOCK_SHARED(LaneMaxima, lanes);
  const BlockShare of = share_of_block(a.shape);
  if (!of.there()) return;
  with_access<ColumnMaxima>(a.shape.type, a.shape.channels, a, of, lanes);
}

/// One thread an item and channel: shares are few, and none is waited for.
PUMICE_KERNEL PUMICE_THREADS(kColumnThreads) void finish_maxima(
    PUMICE_ARGUMENT(FinishMaximumArguments) a) {
  wait_for_previous();
  const int64_t at = global_thread_index();
  if (at >= int64_t{a.shape.rows.items} * a.shape.channels) return;
  const int32_t item = static_cast<int32_t>(at / a.shape.channels);
  const int32_t channel = static_cast<int32_t>(at % a.shape.channels);
  float value = 0.0f;
  int32_t row = -1;
  const int32_t shares = shares_of(a.shape, item_size(a.shape.rows, item));
  for (int32_t share = 0; share < shares; ++share) {
    const int64_t from = partial_row(a.shape, item, share, 0) + channel;
    keep_larger(value, row, a.value[from], a.row[from]);
  }
  if (a.shape.rows.rows.poisoned()) value = quiet_nan();
  a.argmax[at] = row;
  store_element(a.shape.type, a.out, at, value);
}

/// out[argmax[item, c], c] = grad[item, c]; everything else is left as it is.
PUMICE_KERNEL PUMICE_THREADS(kColumnThreads) void scatter_chosen(PUMICE_ARGUMENT(ChosenArguments)
                                                                     a) {
  wait_for_previous();
  const int64_t at = global_thread_index();
  if (at >= a.argmax.size) return;
  const int64_t row = listed_row(a.argmax, at);
  if (row < 0) return;
  store_element(a.type, a.out, row * a.channels + at % a.channels,
                load_element(a.type, a.grad, at));
}

}   // namespace pumice
