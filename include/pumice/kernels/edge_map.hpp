// EdgeMap, the skeleton of sampled products: for every entry of a pattern a value made of the row
// and the column that it joins.
#pragma once

#include <cstdint>

#include <pumice/core/tensor.hpp>
#include <pumice/graphs/csr.hpp>

namespace pumice {

struct EdgeMapArguments {
  CsrView pattern;
  ConstTensorView left;    // [pattern.rows, C]
  ConstTensorView right;   // [pattern.columns, C]
  TensorView output;       // [entries, heads] by the entries' numbers, storage type
};

/// output[e][h] = Σ_c left[row of e][c] · right[column of e][c] over the channels of head h. Runs
/// on all threads; the bits of the result do not depend on their number.
void edge_dot(const EdgeMapArguments& arguments);

}   // namespace pumice
