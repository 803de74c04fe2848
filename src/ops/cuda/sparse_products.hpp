// Products of sparse matrices on a device, of arguments that fit.
#pragma once

#include <pumice/core/tensor.hpp>
#include <pumice/graphs/csr.hpp>
#include <pumice/kernels/gather_reduce.hpp>

namespace pumice::cuda {

/// `teams`: of the plan, here as below.
void spmm(const GatherReduceArguments& arguments, EntryReduction reduction,
          const TeamSchedule& teams);

/// `pattern`: the forward one, of which `backwards` is the transpose. `values` [entries, heads] or
/// undefined; `source` of max and min; what sums and means are `added` to.
void spmm_features_gradient(const CsrView& pattern, const CsrView& backwards,
                            ConstTensorView values, ConstTensorView grad_output,
                            ConstTensorView source, EntryReduction reduction, TensorView output,
                            const TeamSchedule& teams, const RowAddends& added);

/// output [entries, heads].
void spmm_values_gradient(const CsrView& pattern, ConstTensorView features,
                          ConstTensorView grad_output, ConstTensorView source,
                          EntryReduction reduction, TensorView output, const TeamSchedule& teams);

void sddmm(const CsrView& pattern, ConstTensorView left, ConstTensorView right, TensorView output,
           const TeamSchedule& teams);

}   // namespace pumice::cuda
