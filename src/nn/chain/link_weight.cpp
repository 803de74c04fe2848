#include "nn/chain/link_weight.hpp"

#include "ops/cuda/elementwise.hpp"

namespace pumice::nn {

LinkWeight::LinkWeight(ConstTensorView weight, const ConvolutionPlan* plan, DType features,
                       PackedWeights* packed)
    : weight_(weight), packed_(packed) {
  const bool on_device = weight.device().kind == DeviceKind::cuda;
  const bool is_wide = weight.dtype() == DType::f32 && features != DType::f32;
  if (!on_device || !is_wide) return;
  if (plan == nullptr || plan->dataflow == Dataflow::implicit_gemm) return;
  rounded_ = Tensor(weight.shape(), features, weight.stream());
  cuda::convert(weight, 1.0, rounded_.view());
}

}   // namespace pumice::nn
