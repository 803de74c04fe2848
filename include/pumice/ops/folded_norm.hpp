// Batch norms in evaluation as one multiplication and one addition a channel: what a convolution's
// epilogue applies in their place.
#pragma once

#include <span>
#include <vector>

#include <pumice/ops/normalization.hpp>

namespace pumice {

/// A batch norm with given statistics, behind a layer with a bias. All [C] and floating; variance
/// is of the mean's type, bias of the weight's.
struct SettledNorm {
  ConstTensorView mean;
  ConstTensorView variance;
  ConstTensorView weight{};         // undefined: 1
  ConstTensorView bias{};           // undefined: 0
  ConstTensorView added_before{};   // the layer's bias; undefined: 0
  double epsilon = kNormEpsilon;
  /// Of a shortcut that is added to what this one normalises, as wide, behind a layer without bias:
  /// its shift is added to this one's, so that one addition does for both. Null: there is none.
  const SettledNorm* shortcut = nullptr;
};

struct ScaleShift {
  Tensor scale;   // [C]
  Tensor shift;
};
struct ScaleShiftPlaces {
  Place scale{};
  Place shift{};
};

/// y = x · scale + shift, where x has no bias yet: scale = weight / sqrt(variance + epsilon),
/// shift = bias + (added_before - mean) · scale. The result is of the compute type
/// (normalization.hpp).
ScaleShift fold_batch_norm(ConstTensorView mean, ConstTensorView variance, ConstTensorView weight,
                           ConstTensorView bias, ConstTensorView added_before,
                           double epsilon = kNormEpsilon, const ScaleShiftPlaces& places = {});

/// The same of many norms of one device and compute type: one piece of memory and one launch, or
/// few. What they look at belongs to `memory`.
struct ScaleShifts {
  struct Views {
    ConstTensorView scale;
    ConstTensorView shift;
  };
  Tensor memory;
  std::vector<Views> of_norm;
};
/// UserError for a shortcut's norm of other channels or compute type, and for one with a bias
/// before it or a shortcut of its own.
ScaleShifts fold_batch_norms(std::span<const SettledNorm> norms, const Place& place = {});

}   // namespace pumice
