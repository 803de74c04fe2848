// Each is one launch, and one more where a pattern has long rows.
#include "ops/cuda/sparse_products.hpp"

#include "kernels/cuda/entry_launch.hpp"
#include "ops/cuda/sources.hpp"

namespace pumice::cuda {

void spmm(const GatherReduceArguments& arguments, EntryReduction reduction,
          const TeamSchedule& teams) {
  element_type(arguments.features.dtype(), "spmm", "features");
  jit::DeviceRunner runner = runner_for(arguments.features);
  launch_gather_reduce(runner,
                       {.pattern = arguments.pattern,
                        .values = arguments.values,
                        .features = arguments.features,
                        .output = arguments.output,
                        .source = arguments.source,
                        .added = arguments.added},
                       reduction, teams);
}

void spmm_features_gradient(const CsrView& pattern, const CsrView& backwards,
                            ConstTensorView values, ConstTensorView grad_output,
                            ConstTensorView source, EntryReduction reduction, TensorView output,
                            const TeamSchedule& teams, const RowAddends& added) {
  element_type(grad_output.dtype(), "spmm_features_gradient", "grad_output");
  jit::DeviceRunner runner = runner_for(grad_output);
  launch_gather_reduce(
      runner,
      {.pattern = backwards,
       .values = values,
       .features = grad_output,
       .output = output,
       .picked = source,
       .shared_by = reduction == EntryReduction::mean ? pattern.row_begin.data() : nullptr,
       .added = added},
      EntryReduction::sum, teams);
}

void spmm_values_gradient(const CsrView& pattern, ConstTensorView features,
                          ConstTensorView grad_output, ConstTensorView source,
                          EntryReduction reduction, TensorView output, const TeamSchedule& teams) {
  element_type(features.dtype(), "spmm_values_gradient", "features");
  jit::DeviceRunner runner = runner_for(features);
  launch_edge_dot(runner,
                  {.pattern = pattern,
                   .left = grad_output,
                   .right = features,
                   .output = output,
                   .picked = source,
                   .averages = reduction == EntryReduction::mean},
                  teams);
}

void sddmm(const CsrView& pattern, ConstTensorView left, ConstTensorView right, TensorView output,
           const TeamSchedule& teams) {
  element_type(left.dtype(), "sddmm", "left");
  jit::DeviceRunner runner = runner_for(left);
  launch_edge_dot(runner, {.pattern = pattern, .left = left, .right = right, .output = output},
                  teams);
}

}   // namespace pumice::cuda
