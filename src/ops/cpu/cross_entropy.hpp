// Cross entropy on the CPU. Arguments are checked by the caller, but for labels.
#pragma once

#include <pumice/ops/cross_entropy.hpp>

namespace pumice::cpu {

struct LossSums {
  double loss = 0;
  double weight = 0;
};

/// Σ over the rows that count, in double, over chunks of a fixed number of rows; `log_sum`: [N].
/// UserError for a label that is no class.
LossSums cross_entropy(ConstTensorView scores, ConstTensorView labels,
                       const CrossEntropyOptions& options, TensorView log_sum);

/// `factor`: the gradient of the loss over the weights of all rows.
void cross_entropy_gradient(ConstTensorView scores, ConstTensorView labels,
                            const CrossEntropyOptions& options, ConstTensorView log_sum,
                            double factor, TensorView output);

}   // namespace pumice::cpu
