// The gradient of a convolution's weights: for every offset, a product over its pairs.
#pragma once

#include <cstdint>

#include <pumice/core/results.hpp>
#include <pumice/formats/relation.hpp>

namespace pumice {

/// dW[k] = Σ over pairs of offset k: inputᵀ · grad. In the relation, in → rows of `input`, out →
/// rows of `grad_output`; rows may repeat. result: [K, C_in / groups, C_out] of the inputs' storage
/// type; half types are multiplied and summed in float and rounded once. Partial sums are cut by
/// pair count alone and added in order, so the bits do not depend on the number of threads.
Tensor weight_gradient(ConstTensorView input, ConstTensorView grad_output,
                       const RelationView& relation, std::int64_t groups, const Place& place = {});
/// Of a kernel map, or a caller's own lists, which are checked.
Tensor weight_gradient(ConstTensorView input, ConstTensorView grad_output, const KernelMapView& map,
                       std::int64_t groups, const Place& place = {});

}   // namespace pumice
