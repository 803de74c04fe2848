// From rows to one vector for each batch item, and back: global pooling and broadcasting.
#pragma once

#include <cstdint>

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/core/results.hpp>

namespace pumice {

struct GlobalMaxPooled {
  Tensor output;   // [batch_size, C]
  Tensor argmax;   // i32 [batch_size, C]: row of the maximum, the smallest of equals; -1: no rows
};
struct GlobalMaxPooledPlaces {
  Place output{};
  Place argmax{};
};

/// features: [rows of set, C] -> [set.batch_size(), C]. A batch item without rows gives 0. A NaN
/// wins over every number.
GlobalMaxPooled global_max_pool(ConstTensorView features, const CoordinateSet& set,
                                const GlobalMaxPooledPlaces& places = {});
/// Summed in double, whatever the storage type, and rounded once; on a device in double over sums
/// of a few hundred rows in float.
Tensor global_average_pool(ConstTensorView features, const CoordinateSet& set,
                           const Place& place = {});
Tensor global_sum_pool(ConstTensorView features, const CoordinateSet& set, const Place& place = {});

/// Gradients of the features, [rows, C], from grad_output [batch_size, C].
Tensor global_max_pool_gradient(ConstTensorView grad_output, ConstTensorView argmax,
                                const CoordinateSet& set, const Place& place = {});
Tensor global_average_pool_gradient(ConstTensorView grad_output, const CoordinateSet& set,
                                    const Place& place = {});
Tensor global_sum_pool_gradient(ConstTensorView grad_output, const CoordinateSet& set,
                                const Place& place = {});

/// items: [batch_size, C] -> [rows, C]: every row gets the vector of its batch item. Its gradient
/// is `global_sum_pool`.
Tensor broadcast(ConstTensorView items, const CoordinateSet& set, const Place& place = {});
/// features [rows, C] with items [batch_size, C], same dtype.
Tensor broadcast_add(ConstTensorView features, ConstTensorView items, const CoordinateSet& set,
                     const Place& place = {});
Tensor broadcast_multiply(ConstTensorView features, ConstTensorView items, const CoordinateSet& set,
                          const Place& place = {});
/// [rows, C + D]: features [rows, C], then the vector of the batch item, [batch_size, D].
Tensor broadcast_concatenate(ConstTensorView features, ConstTensorView items,
                             const CoordinateSet& set, const Place& place = {});

struct BroadcastGradients {
  Tensor features;   // [rows, C]
  Tensor items;      // [batch_size, D]
};
struct BroadcastGradientPlaces {
  Place features{};
  Place items{};
};
BroadcastGradients broadcast_add_gradient(ConstTensorView grad_output, const CoordinateSet& set,
                                          const BroadcastGradientPlaces& places = {});
BroadcastGradients broadcast_multiply_gradient(ConstTensorView features, ConstTensorView items,
                                               ConstTensorView grad_output,
                                               const CoordinateSet& set,
                                               const BroadcastGradientPlaces& places = {});
/// `channels`: C of the features; the remaining columns belong to the items.
BroadcastGradients broadcast_concatenate_gradient(ConstTensorView grad_output,
                                                  std::int64_t channels, const CoordinateSet& set,
                                                  const BroadcastGradientPlaces& places = {});

}   // namespace pumice
