// What the kernels that go through rows column by column (statistics of norms, their gradients,
// sums over rows) are launched with.
//
//     item 0            item 1        rows of an item, in shares of equal length: one thread block
//   ┌────┬────┬────┐  ┌────┬────┐     for each share and tile of columns
//   │ s0 │ s1 │ s2 │  │ s0 │ s1 │ …
//   └────┴────┴────┘  └────┴────┘     partial results [items, shares, 2, channels], added up in an
//                                     order that the rows give: the same bits every time
//
// Blocks are launched for as many rows as there is room for, but an item is cut by the number of
// rows that it has, which the device may be the only one to know: sums have the same bits in any
// room. Blocks whose shares an item does not need do nothing.
//
// Norms have no launch that adds up: every block of the kernel that needs the sums adds them up for
// its own columns. There are a few dozen shares, which lie in the L2, and no block waits for
// another.
#pragma once

#include <pumice/ops/row_list_arguments.h>
#include <pumice/shared/row_count.h>
#include <pumice/shared/status.h>
#include <pumice/shared/tile_spec.h>
#include <pumice/shared/types.h>

namespace pumice {

inline constexpr int kColumnThreads = 512;
/// Columns that a thread block has at most: a whole number of sectors of a row, and few enough that
/// all blocks of a tile can afford to add up its shares.
inline constexpr int kColumnTile = 32;
/// Columns that a thread has at a time: of rows whose channels are a multiple of it.
inline constexpr int kColumnVector = 4;
/// Shares that a block of a norm adds up in one round, 8 by each warp: with 10, NVRTC 12 spills.
inline constexpr int kSharesAtOnce = 128;
inline constexpr int kFinishThreads = 1024;
/// Channels of a block that adds shares up; its other threads share the shares.
inline constexpr int kFinishChannels = 32;

/// Rows that belong together: the rows at positions [begin[i], begin[i + 1]) are item i.
struct RowItems {
  RowCountRef rows{};
  const int64_t* begin = nullptr;   // [items + 1]; null: all rows are one item
  const int32_t* order = nullptr;   // [rows] position -> row; null: position == row
  int32_t items = 1;
};

/// How many thread blocks the rows of each item are cut into, and what they are of.
struct ColumnShape {
  RowItems rows{};
  int32_t channels = 0;
  int32_t shares = 1;       // of each item, that blocks are launched for
  int32_t share_rows = 1;   // an item has a share for so many of its rows, as far as there are any
  int64_t step = 0;         // rows of each share, where the host knows them; 0: blocks work it out
  ElementType type = ElementType::f32;   // of features and gradients
};

/// Mean and sum of squared distances to it, of each share.
struct MomentArguments {
  ColumnShape shape{};
  const void* in = nullptr;   // [rows, channels]
  float* partial = nullptr;
};

/// What the statistics of an item without rows are.
enum class EmptyItem : int32_t {
  mean_and_deviation,   // of no variance, as batch norm has them
  zero,                 // instance norm
};

/// Statistics that are still in shares, as `MomentArguments` left them, and what becomes of them.
struct NewStatistics {
  const float* partial = nullptr;       // null: there are none, statistics are given
  float* mean = nullptr;                // [items, channels]
  float* inverse_deviation = nullptr;   // 1 / sqrt(variance + epsilon)
  void* running_mean = nullptr;         // of `running_type`; null: nobody keeps them; of one item
  void* running_variance = nullptr;     // moves towards the unbiased variance
  int64_t* batches = nullptr;           // one more, where there are rows; null: nobody counts
  double epsilon = 0;
  double momentum = 0;
  EmptyItem empty = EmptyItem::mean_and_deviation;
  ElementType running_type = ElementType::f32;
  StatusRecord* status = nullptr;   // whom an item of one row is reported to: it gets NaN; null: it
                                    // has a variance of 0
  int32_t site = 0;
};

/// out = (in − mean) · inverse_deviation · weight + bias, statistics of the row's item.
struct NormalizeArguments {
  ColumnShape shape{};
  const void* in = nullptr;
  void* out = nullptr;
  const float* mean = nullptr;
  const float* inverse_deviation = nullptr;
  NewStatistics own{};              // in place of those two
  const void* weight = nullptr;     // of `parameter_type`; null: 1
  const void* bias = nullptr;       // null: 0
  const void* residual = nullptr;   // [rows, channels], added; null: 0
  bool relu = false;                // behind all that
  ElementType parameter_type = ElementType::f32;
};

/// What the terms of the second of two sums are, beside the gradients g themselves.
enum class SumTerm : int32_t {
  none,         // there is no second sum
  product,      // g · x
  centered,     // g · (x − mean[item])
  normalized,   // g · (x − mean[row]) · inverse_deviation[row]
};

/// Σ g and Σ of a second term, of each share.
struct ColumnSumArguments {
  ColumnShape shape{};
  const void* grad = nullptr;   // g: [rows, channels]
  const void* in = nullptr;     // x
  const void* relu =
      nullptr;   // [rows, channels] output of a ReLU: g is 0 where that is; null: none
  const float* mean = nullptr;
  const float* inverse_deviation = nullptr;
  float* partial = nullptr;
  SumTerm term = SumTerm::none;
};

/// Shares to sums of items.
struct FinishSumArguments {
  ColumnShape shape{};
  const float* partial = nullptr;
  void* out = nullptr;    // [items, channels] of `out_type`
  bool second = false;    // the second of the two sums
  bool average = false;   // divided by the rows of the item; 0 where there are none
  ElementType out_type = ElementType::f32;
};

/// Shares to the gradients of a norm's parameters, [channels], summed over items.
struct NormGradientArguments {
  ColumnShape shape{};
  const float* partial = nullptr;
  const float* inverse_deviation = nullptr;   // [items, channels]; null: in the terms already
  float* grad_weight = nullptr;
  float* grad_bias = nullptr;
};

/// dx = (g − mean of g − (x − mean) · slope) · inverse_deviation · weight; slope: mean of
/// g · (x − mean), over the variance.
struct FeatureGradientArguments {
  ColumnShape shape{};
  const void* in = nullptr;
  const void* grad = nullptr;
  const void* relu = nullptr;   // as for sums
  void* out = nullptr;
  void* passed = nullptr;   // g behind the ReLU, which a residual gets; null: nobody does
  const float* mean = nullptr;
  const float* inverse_deviation = nullptr;
  const void* weight = nullptr;     // of `parameter_type`; null: 1
  const float* partial = nullptr;   // shares of Σ g and of Σ g · (x − mean)
  bool constant = false;            // statistics do not depend on x: dx = g · factor
  // [channels], of one item, of `parameter_type`; null: `NormGradientArguments`
  void* grad_weight = nullptr;
  void* grad_bias = nullptr;
  ElementType parameter_type = ElementType::f32;
};

/// The largest value and its row, of each share; -1 for a share without rows.
struct MaximumArguments {
  ColumnShape shape{};
  const void* in = nullptr;
  float* value = nullptr;   // partial results, of which only the first of two is used
  int32_t* row = nullptr;
};

/// Shares to the largest of items: 0 and -1 for an item without rows.
struct FinishMaximumArguments {
  ColumnShape shape{};
  const float* value = nullptr;
  const int32_t* row = nullptr;
  void* out = nullptr;         // [items, channels] of the features' type
  int32_t* argmax = nullptr;   // [items, channels]
};

/// Gradients of the largest values, each to the row it came from.
struct ChosenArguments {
  const void* grad = nullptr;   // [items, channels]
  RowList argmax{};             // [items, channels]
  void* out = nullptr;          // [rows, channels], zeros
  int32_t channels = 0;
  ElementType type = ElementType::f32;
};

/// What rows become of the vector of their item.
enum class Spread : int32_t { copy, average, add, multiply };

struct SpreadArguments {
  ColumnShape shape{};
  const void* items = nullptr;   // [items, channels]
  const void* in = nullptr;      // [rows, channels], of add and multiply
  void* out = nullptr;
  Spread spread = Spread::copy;   // average: divided by the rows of the item
};

/// out = 1 / sqrt(variance + epsilon)
struct DeviationArguments {
  const float* variance = nullptr;
  float* out = nullptr;
  double epsilon = 0;
  int32_t channels = 0;
};

/// Norms of single rows: a warp a row.
struct LayerNormArguments {
  RowCountRef rows{};
  const void* in = nullptr;
  const void* grad = nullptr;   // null: forward
  void* out = nullptr;
  float* new_mean = nullptr;   // [rows], forward
  float* new_inverse_deviation = nullptr;
  const float* mean = nullptr;   // [rows], with a gradient
  const float* inverse_deviation = nullptr;
  const float* weight = nullptr;   // null: 1
  const float* bias = nullptr;     // null: 0
  double epsilon = 0;
  int32_t channels = 0;
  ElementType type = ElementType::f32;
};

}   // namespace pumice
