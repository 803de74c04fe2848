#include "nn/chain/link_weight.hpp"

#include "ops/cuda/elementwise.hpp"

namespace pumice::nn {

bool LinkWeight::rounds(ConstTensorView weight, const ConvolutionPlan* plan, DType features) {
  const bool on_device = weight.device().kind == DeviceKind::cuda;
  const bool is_wide = weight.dtype() == DType::f32 && features != DType::f32;
  return on_device && is_wide && plan != nullptr && plan->dataflow != Dataflow::implicit_gemm;
}

LinkWeight::LinkWeight(ConstTensorView weight, const ConvolutionPlan* plan, DType features,
                       PackedWeights* packed)
    : weight_(weight), packed_(packed) {
  if (!rounds(weight, plan, features)) return;
  rounded_ = Tensor(weight.shape(), features, weight.stream());
  cuda::convert(weight, 1.0, rounded_.view());
}

}   // namespace pumice::nn
