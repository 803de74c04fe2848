// Kernels that go through rows column by column: statistics and gradients of norms, sums over rows.
// Arguments are checked by the caller; everything is enqueued on the stream of `runner`.
#pragma once

#include <cstdint>

#include <pumice/ops/column_arguments.h>
#include <pumice/core/tensor.hpp>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// All rows of `features` as one item.
RowItems all_rows(const ConstTensorView& features);

/// 1 / sqrt(variance + epsilon), f32 [C].
void invert_deviations(jit::KernelRunner& runner, ConstTensorView variance, double epsilon,
                       TensorView inverse_deviation);

/// (x − mean) · inverse_deviation · weight + bias. Statistics f32 [items, C]; weight and bias [C]
/// of f32, f16 or bf16, undefined: 1 and 0. One launch.
void normalize(jit::KernelRunner& runner, const RowItems& rows, ConstTensorView features,
               ConstTensorView mean, ConstTensorView inverse_deviation, ConstTensorView weight,
               ConstTensorView bias, TensorView output);

/// Where a norm's running statistics are, [C] of f32, f16 or bf16, and an i64 number of batches;
/// undefined: nobody keeps them. Of one item.
struct Running {
  TensorView mean{};
  TensorView variance{};
  TensorView batches{};
  double momentum = 0;
};
/// Statistics of the rows themselves, and where they are kept, f32 [items, C].
struct OwnStatistics {
  TensorView mean;
  TensorView inverse_deviation;
  double epsilon = 0;
  EmptyItem empty = EmptyItem::mean_and_deviation;
  Running running{};
  /// Whether an item of one row is reported to the stream, and gets NaN; else its variance is 0.
  bool reports_single_row = false;
};
/// What follows a norm: relu(norm + residual).
struct BehindNorm {
  ConstTensorView residual{};   // undefined: 0
  bool relu = false;
};
/// The same with each item's own statistics. Two launches: the second adds up what the first left.
void normalize_by_own(jit::KernelRunner& runner, const RowItems& rows, ConstTensorView features,
                      const OwnStatistics& own, ConstTensorView weight, ConstTensorView bias,
                      TensorView output, const BehindNorm& behind = {});

struct NormGradientViews {
  TensorView features;   // [N, C]
  TensorView weight;     // [C] of the parameters' type; of several items f32
  TensorView bias;
  TensorView residual{};   // [N, C], of what was added behind the norm; undefined: nothing was
};
/// Two launches; a third for the parameters of several items. `constant_statistics`: they do not
/// depend on the features. `relu`: the output of one behind the norm.
void normalize_gradient(jit::KernelRunner& runner, const RowItems& rows, ConstTensorView features,
                        ConstTensorView grad_output, ConstTensorView mean,
                        ConstTensorView inverse_deviation, ConstTensorView weight,
                        bool constant_statistics, const NormGradientViews& gradients,
                        ConstTensorView relu = {});

/// One launch.
void layer_norm(jit::KernelRunner& runner, const RowCountRef& rows, ConstTensorView features,
                ConstTensorView weight, ConstTensorView bias, double epsilon, TensorView output,
                TensorView mean, TensorView inverse_deviation);
/// Three launches.
void layer_norm_gradient(jit::KernelRunner& runner, const RowCountRef& rows,
                         ConstTensorView features, ConstTensorView grad_output,
                         ConstTensorView weight, ConstTensorView mean,
                         ConstTensorView inverse_deviation, const NormGradientViews& gradients);

/// Σ over the rows of each item, [items, C] of the type of `output`, divided by their number if
/// `average`. Two launches.
void sum_items(jit::KernelRunner& runner, const RowItems& rows, ConstTensorView features,
               bool average, TensorView output);
/// Σ left · right over the rows of each item.
void sum_products(jit::KernelRunner& runner, const RowItems& rows, ConstTensorView left,
                  ConstTensorView right, TensorView output);

/// The largest of each column among the rows of each item, [items, C], and the row it came from,
/// i32 [items, C]: the smallest of equals, -1 where there is none. Two launches.
void largest_of_items(jit::KernelRunner& runner, const RowItems& rows, ConstTensorView features,
                      TensorView output, TensorView argmax);
/// Gradients [items, C] to the rows that were chosen, in `grad_features` full of zeros.
void scatter_chosen(jit::KernelRunner& runner, ConstTensorView grad_output, ConstTensorView argmax,
                    TensorView grad_features);

/// Every row gets the vector of its item, [items, C], or what it has (`features`) is joined with
/// that. One launch.
void spread_items(jit::KernelRunner& runner, const RowItems& rows, ConstTensorView items,
                  ConstTensorView features, Spread spread, TensorView output);

}   // namespace pumice::cuda
