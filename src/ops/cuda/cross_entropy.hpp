// Cross entropy on CUDA. Arguments are checked by the caller, but for labels; everything is
// enqueued on the stream of the scores.
#pragma once

#include <pumice/shared/row_count.h>
#include <pumice/ops/cross_entropy.hpp>

namespace pumice::cuda {

/// Two launches. Results: f32 [1], [1] and [N].
void cross_entropy(ConstTensorView scores, ConstTensorView labels, const RowCountRef& rows,
                   const CrossEntropyOptions& options, TensorView loss, TensorView weight,
                   TensorView log_sum);

/// One launch, over all rows that there is room for.
void cross_entropy_gradient(ConstTensorView scores, ConstTensorView labels, const RowCountRef& rows,
                            const CrossEntropyOptions& options, ConstTensorView log_sum,
                            ConstTensorView weight, ConstTensorView grad_loss, TensorView output);

}   // namespace pumice::cuda
