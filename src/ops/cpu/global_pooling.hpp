// Global pooling and broadcasting loops on the CPU. Arguments are checked by the caller.
#pragma once

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/core/tensor.hpp>

namespace pumice::cpu {

void global_max_pool(ConstTensorView features, const CoordinateSet& set, TensorView output,
                     TensorView argmax);
/// `average` divides by the rows of the item.
void global_sum_pool(ConstTensorView features, const CoordinateSet& set, bool average,
                     TensorView output);
/// output must be zero where no maximum came from.
void global_max_pool_gradient(ConstTensorView grad_output, ConstTensorView argmax,
                              TensorView grad_features);
/// output[row] = items[batch of row], divided by the rows of the item if `average`.
void broadcast(ConstTensorView items, const CoordinateSet& set, bool average, TensorView output);

enum class Join : unsigned char { add, multiply, concatenate };
void broadcast_join(ConstTensorView features, ConstTensorView items, const CoordinateSet& set,
                    Join join, TensorView output);
/// items = Σ over the rows of each item of left · right.
void global_product_sum(ConstTensorView left, ConstTensorView right, const CoordinateSet& set,
                        TensorView items);

}   // namespace pumice::cpu
