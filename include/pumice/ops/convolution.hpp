// Sparse convolution over a kernel map, and its gradients.
#pragma once

#include <optional>

#include <pumice/kernels/tile_mma.hpp>
#include <pumice/kernels/tile_weights.hpp>
#include <pumice/maps/kernel_map.hpp>
#include <pumice/plan/convolution_plan.hpp>

namespace pumice {

struct ConvolutionOptions {
  std::int64_t groups = 1;
  Epilogue epilogue{};                    // forward only; a bias is its `shift`
  std::optional<Dataflow> dataflow{};     // absent: the plan decides; no weight gradient takes one
  const PackedWeight* packed = nullptr;   // weights packed before; must match `weight`
  TileWeights* tile_weights = nullptr;    // on a device: where packed weights are kept
  /// On a device: the same bits every time. Costs weight gradients memory and a launch, and
  /// fetch_on_demand a row of f32 for each pair; all else has them anyway.
  bool deterministic = false;
  /// f32 features on a device: products of numbers rounded to tf32, sums in f32. UserError for
  /// other types and on the CPU. Depthwise convolutions multiply in f32 all the same.
  bool tf32 = false;
  ConvolutionPlan* chosen = nullptr;   // receives the plan that ran
};

/// y[out] = Σ_k x[in] · W[k] over the pairs of `map`, then the epilogue.
/// features: [map.in_rows, C_in]; weight: [K, C_in / groups, C_out], same dtype. Returns
/// [map.out_rows, C_out] of that dtype. UserError names the layer's mismatching argument.
Tensor convolution(ConstTensorView features, ConstTensorView weight, const KernelMapView& map,
                   const ConvolutionOptions& options = {});

/// Gradient of the features: grad_output [map.out_rows, C_out] → [map.in_rows, C_in]. `map` is the
/// forward map; its transpose is taken here.
Tensor convolution_input_gradient(ConstTensorView grad_output, ConstTensorView weight,
                                  const KernelMapView& map, const ConvolutionOptions& options = {});

/// Gradient of the weight, [K, C_in / groups, C_out].
Tensor convolution_weight_gradient(ConstTensorView features, ConstTensorView grad_output,
                                   const KernelMapView& map,
                                   const ConvolutionOptions& options = {});

/// Gradient of a bias: the sum over rows, compute type [C].
Tensor bias_gradient(ConstTensorView grad_output);

}   // namespace pumice
