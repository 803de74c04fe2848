// What a convolution does to whole rows beside its products.
#pragma once

#include <pumice/core/tensor.hpp>
#include <pumice/kernels/epilogue.hpp>

namespace pumice::cpu {

/// output = epilogue(sums), row by row. sums: compute type, the output's shape.
void finish_rows(ConstTensorView sums, const Epilogue& epilogue, TensorView output);

/// The sum over rows in compute type, [C]: chunks of fixed length, added in order.
void sum_rows(ConstTensorView rows, TensorView result);

}   // namespace pumice::cpu
