// ScoreGradient, the skeleton of what comes back through EdgeMap's scores: for every row of a
// pattern a sum over its entries, of which the sums of rows and columns are computed once more.
#pragma once

#include <pumice/core/tensor.hpp>
#include <pumice/graphs/csr.hpp>

namespace pumice {

/// The pattern of the scores, whose `own` are their left rows and `other` their right ones; or its
/// transpose, where it is the other way round. All of one floating type.
struct ScoreGradientArguments {
  CsrView pattern;
  ConstTensorView own;         // [pattern.rows, C]
  ConstTensorView other;       // [pattern.columns, C]
  ConstTensorView attention;   // [heads, C / heads]
  ConstTensorView entry{};     // [entries, C] by the entries' numbers; undefined: zeros
  double negative_slope = 1;
  ConstTensorView grad;          // [entries, heads] by the entries' numbers
  TensorView output;             // [pattern.rows, C]: the gradient of `own`; every row is written
  TensorView grad_attention{};   // [heads, C / heads]; undefined: not wanted
  /// [entries, C]; written where there are `entry` and grad_attention is wanted.
  TensorView grad_entry{};
};

/// Runs on all threads; the bits of the result do not depend on their number. Sums run in the
/// compute type and are rounded once.
void score_gradient(const ScoreGradientArguments& arguments);

}   // namespace pumice
