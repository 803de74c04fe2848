// A call of an operator once more, with any plan, on numbers of its own.
#pragma once

#include <map>
#include <tuple>

#include <pumice/ops/convolution.hpp>
#include <pumice/ops/operator_calls.hpp>

namespace pumice {

/// Random features, one tensor for each shape, type and place in a call.
class ReplayTensors {
 public:
  explicit ReplayTensors(StreamView stream) : stream_(stream) {}
  /// `role` tells tensors of one call apart. Empty where there are no channels.
  Tensor get(std::int64_t rows, std::int64_t channels, DType dtype, int role);
  StreamView stream() const { return stream_; }

 private:
  StreamView stream_;
  std::map<std::tuple<std::int64_t, std::int64_t, DType, int>, Tensor> made_;
};

class ReplayedCall {
 public:
  /// `keeps_weights`: packed weights are kept from one run to the next, as in inference.
  ReplayedCall(const OperatorCall& call, ReplayTensors& tensors, bool keeps_weights);

  const OperatorCall& call() const { return call_; }
  /// Enqueues it on `map`, which is the call's, or another one of the same rows; null for a linear
  /// layer.
  void run(const ConvolutionPlan& plan, const KernelMap* map);

 private:
  void run_linear(const ConvolutionPlan& plan);
  void run_forward(ConvolutionOptions options, const KernelMapView& view);
  void run_input_gradient(ConvolutionOptions options, const KernelMapView& view);
  void run_weight_gradient(ConvolutionOptions options, const KernelMapView& view);

  OperatorCall call_;
  bool keeps_weights_;
  // Those that the direction has.
  Tensor input_, second_, shortcut_, shortcut_second_, grad_output_;
  Tensor weight_, shortcut_weight_, scale_, shift_;
  PackedWeights packed_{};
  PackedWeights shortcut_packed_{};
};

/// A map of the same rows of which nothing is cut yet; on the CPU the map itself, since there each
/// call cuts for itself.
KernelMapPtr uncut(const KernelMapPtr& map);

}   // namespace pumice
