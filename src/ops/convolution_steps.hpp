// Convolutions of several tensors where no kernel takes them together.
#pragma once

#include <initializer_list>

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/ops/convolution.hpp>

namespace pumice {

/// Before a step that goes over all rows of a set, instead of those that are in use: clears the
/// others, of tensors [rows of the set, C] on a device. Nothing where the host knows how many there
/// are.
void close_tails(const CoordinateSet& set, std::initializer_list<ConstTensorView> features);

/// Channels of two tensors on the same rows of a map's input side by side.
Tensor concatenate_inputs(ConstTensorView features, ConstTensorView second,
                          const KernelMapView& map);

/// Concatenates what lies in two tensors, multiplies the shortcut, which becomes a residual, and
/// calls `convolution` with what remains and the same plan. Arguments are checked by the caller.
Tensor convolution_in_steps(ConstTensorView features, ConstTensorView weight,
                            const KernelMapView& map, const ConvolutionPlan& plan,
                            ConvolutionOptions options, const Place& place);

}   // namespace pumice
