// Gradients of max and min over the entries of a row: each channel's goes to the entry that was
// picked.
#pragma once

#include <pumice/core/tensor.hpp>
#include <pumice/graphs/csr.hpp>
#include <pumice/plan/sparse_plan.hpp>

namespace pumice::cpu {

/// output [backwards.rows, C]: over the entries of a column, in order, what was picked of them.
/// `values` [entries, heads] or undefined.
void picked_features_gradient(const CsrView& backwards, ConstTensorView values,
                              ConstTensorView grad_output, ConstTensorView source,
                              TensorView output, const RangeSchedule& schedule);

/// output [entries, heads].
void picked_values_gradient(const CsrView& pattern, ConstTensorView features,
                            ConstTensorView grad_output, ConstTensorView source, TensorView output,
                            const RangeSchedule& schedule);

}   // namespace pumice::cpu
