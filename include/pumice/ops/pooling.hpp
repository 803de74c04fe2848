// Pooling over a kernel map, and its gradients. Only active inputs count: there are no zeros of
// empty cells to be the maximum of, or to divide by. A device adds in the same order as the CPU and
// gives the same bits, but for a last one where it divides.
#pragma once

#include <cstdint>

#include <pumice/core/results.hpp>
#include <pumice/maps/kernel_map.hpp>

namespace pumice {

struct MaxPooled {
  Tensor output;   // [map.out_rows, C]
  Tensor argmax;   // i32 [map.out_rows, C]: input row the maximum came from; -1 where none meets it
};
struct MaxPooledPlaces {
  Place output{};
  Place argmax{};
};

/// features: [map.in_rows, C]. Among equal inputs the one met through the smallest offset wins; a
/// NaN wins over every number. An output that no input meets is 0.
MaxPooled max_pool(ConstTensorView features, const KernelMapView& map,
                   const MaxPooledPlaces& places = {});
/// The sum over the active inputs divided by their number; 0 where there are none.
Tensor average_pool(ConstTensorView features, const KernelMapView& map, const Place& place = {});
/// Offsets are added in ascending order, in float (double for f64), rounded once.
Tensor sum_pool(ConstTensorView features, const KernelMapView& map, const Place& place = {});

/// Gradients of the features, [map.in_rows, C], from grad_output [map.out_rows, C]. `map` is the
/// forward map; its transpose is taken here.
Tensor max_pool_gradient(ConstTensorView grad_output, ConstTensorView argmax,
                         const KernelMapView& map, const Place& place = {});
Tensor average_pool_gradient(ConstTensorView grad_output, const KernelMapView& map,
                             const Place& place = {});
Tensor sum_pool_gradient(ConstTensorView grad_output, const KernelMapView& map,
                         const Place& place = {});

}   // namespace pumice
