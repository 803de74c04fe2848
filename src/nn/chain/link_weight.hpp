// The weight of a link for one product, of the type that its plan takes.
#pragma once

#include <pumice/core/tensor.hpp>
#include <pumice/kernels/packed_weights.hpp>
#include <pumice/plan/convolution_plan.hpp>

namespace pumice::nn {

/// Kernels of implicit GEMM round an f32 weight of features in half precision where they pack it.
/// Where a plan names another dataflow, a rounded copy is made here, and packed for this product
/// alone: what is kept packed is of the weight as it lies.
class LinkWeight {
 public:
  /// Whether a copy is made. `plan`: null where one is chosen, which on a device is of implicit
  /// GEMM.
  static bool rounds(ConstTensorView weight, const ConvolutionPlan* plan, DType features);

  LinkWeight(ConstTensorView weight, const ConvolutionPlan* plan, DType features,
             PackedWeights* packed);

  ConstTensorView view() const { return rounded_.defined() ? rounded_.view() : weight_; }
  PackedWeights* packed() const { return rounded_.defined() ? nullptr : packed_; }

 private:
  ConstTensorView weight_;
  PackedWeights* packed_;
  Tensor rounded_;
};

}   // namespace pumice::nn
