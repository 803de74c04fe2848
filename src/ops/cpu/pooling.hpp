// Pooling loops on the CPU. Arguments are checked by the caller.
#pragma once

#include <pumice/core/tensor.hpp>
#include <pumice/maps/kernel_map.hpp>

namespace pumice::cpu {

void max_pool(ConstTensorView features, const KernelMapView& map, TensorView output,
              TensorView argmax);
/// The sum over the inputs of each output, divided by their number if `average`.
void sum_pool(ConstTensorView features, const KernelMapView& map, bool average, TensorView output);
void max_pool_gradient(ConstTensorView grad_output, ConstTensorView argmax,
                       const KernelMapView& map, TensorView grad_features);
void average_pool_gradient(ConstTensorView grad_output, const KernelMapView& map,
                           TensorView grad_features);

}   // namespace pumice::cpu
