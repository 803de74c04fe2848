// Weights of convolutions in layouts of other libraries.
#pragma once

#include <span>

#include <pumice/ops/permutation.hpp>

namespace pumice::nn {

/// In which shape to look at a weight, and the order of its axes as [offsets, C_in, C_out], where
/// all axes but the last two are offsets.
struct WeightLayout {
  Shape shape;
  AxisOrder order{};

  /// InternalError unless there are as many axes as extents, two or more.
  WeightLayout(std::span<const std::int64_t> extents, std::span<const int> axes);
  /// [K, C_in, C_out]
  Shape weight_shape() const;
  /// Or else its memory is that of the weight as it is.
  bool moves() const;
};

}   // namespace pumice::nn
