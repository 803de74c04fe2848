// Convolutions of several tensors where no kernel takes them together.
#pragma once

#include <pumice/ops/convolution.hpp>

namespace pumice {

/// Concatenates what lies in two tensors, multiplies the shortcut, which becomes a residual, and
/// calls `convolution` with what remains and the same plan. Arguments are checked by the caller.
Tensor convolution_in_steps(ConstTensorView features, ConstTensorView weight,
                            const KernelMapView& map, const ConvolutionPlan& plan,
                            ConvolutionOptions options, const Place& place);

}   // namespace pumice
