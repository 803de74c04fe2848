// EdgeMap, the skeleton of sampled products: for every entry of a pattern a value made of the row
// and the column that it joins.
#pragma once

#include <cstdint>

#include <pumice/core/tensor.hpp>
#include <pumice/graphs/csr.hpp>
#include <pumice/plan/sparse_plan.hpp>

namespace pumice {

struct EdgeMapArguments {
  CsrView pattern;
  ConstTensorView left;    // [pattern.rows, C]
  ConstTensorView right;   // [pattern.columns, C]
  /// [heads, C / heads]: scores are wanted; undefined: dot products.
  ConstTensorView attention{};
  ConstTensorView entry{};     // of scores: [entries, C] by the entries' numbers; undefined: zeros
  double negative_slope = 1;   // of scores
  TensorView output;           // [entries, heads] by the entries' numbers, storage type
  RangeSchedule schedule{};
};

/// output[e][h], over the channels c of head h,
///
///   = Σ left[row of e][c] · right[column of e][c], or with attention
///   = Σ attention[h][c] · leaky(left[row of e][c] + right[column of e][c] + entry[e][c])
///
/// where leaky(z) = z > 0 ? z : negative_slope · z. Runs on all threads; the bits of the result do
/// not depend on their number.
void edge_map(const EdgeMapArguments& arguments);

}   // namespace pumice
