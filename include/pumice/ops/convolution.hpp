// Sparse convolution over a kernel map, and its gradients.
#pragma once

#include <optional>

#include <pumice/core/numerics.hpp>
#include <pumice/core/results.hpp>
#include <pumice/kernels/packed_weights.hpp>
#include <pumice/kernels/tile_mma.hpp>
#include <pumice/maps/kernel_map.hpp>
#include <pumice/plan/choose.hpp>
#include <pumice/plan/plan_book.hpp>

namespace pumice {

/// A further input, which every output meets row by row through weights of its own: the 1×1
/// shortcut of a residual block. Adds features · weight · scale before the activation.
struct Shortcut {
  ConstTensorView features{};   // [map.out_rows, C], of the features' type; undefined: no shortcut
  ConstTensorView second{};     // further channels of the same rows; undefined: none
  ConstTensorView weight{};     // [1, all its channels, C_out]
  ConstTensorView scale{};      // compute type [C_out]: of a folded norm; undefined: 1
  PackedWeights* kept = nullptr;   // as in ConvolutionOptions
};

struct ConvolutionOptions {
  std::int64_t groups = 1;
  Epilogue epilogue{};   // forward only, but for an input gradient's residual; a bias is `shift`
  /// Forward only: further channels of the input's rows, so that a concatenation need not be made.
  /// The plan says whether one kernel reads all these tensors, or they are brought together first.
  ConstTensorView second{};
  Shortcut shortcut{};   // forward only
  /// How to run it: chosen by hand, measured, read from a file. Null: `choose` decides. UserError
  /// where it does not fit (`check` of pumice/plan/choose.hpp).
  const ConvolutionPlan* plan = nullptr;
  /// Taken before the rules, but after what was measured to be better (plan/shared_cuts.hpp).
  const PlanBook* shared = nullptr;
  /// Instead of a plan: the dataflow alone, the rest is chosen. No weight gradient takes one.
  std::optional<Dataflow> dataflow{};
  /// Where the packed weight is kept for the next call; null: packed for this one. On a device,
  /// beside a shortcut, it holds the epilogue's scale: to be cleared when that changes too.
  PackedWeights* kept = nullptr;
  Numerics numerics{};
  /// On a device, in one group, with implicit_gemm: an f32 weight of f16 or bf16 features, and that
  /// of a shortcut, is rounded where it is packed, so that no rounded copy need be made.
  bool rounds_weight = false;
  bool wide_weight_gradient = false;   // of f16 and bf16: it stays in f32, in which it was added up
};

/// What the operators below are, without their data: for `candidates`, `choose` and `explain`. The
/// arguments are those of the operator, which are looked at and not computed with.
ConvolutionProblem convolution_problem(ConstTensorView features, ConstTensorView weight,
                                       const KernelMapView& map,
                                       const ConvolutionOptions& options = {});
ConvolutionProblem convolution_input_gradient_problem(ConstTensorView grad_output,
                                                      ConstTensorView weight,
                                                      const KernelMapView& map,
                                                      const ConvolutionOptions& options = {});
ConvolutionProblem convolution_weight_gradient_problem(ConstTensorView features,
                                                       ConstTensorView grad_output,
                                                       const KernelMapView& map,
                                                       const ConvolutionOptions& options = {});

/// The plan that such a problem runs with on `map`, in the direction of the problem: that of the
/// options, or a chosen one. The options' own lives as long as they do.
PlanPtr plan_of(const ConvolutionProblem& problem, const KernelMapView& map,
                const ConvolutionOptions& options = {});

/// y[out] = Σ_k x[in] · W[k] over the pairs of `map`, then the epilogue.
/// features, and `second` beside them: [map.in_rows, C_in]; weight: [K, C_in / groups, C_out], same
/// dtype. Returns [map.out_rows, C_out] of that dtype. UserError names the layer's mismatching
/// argument.
Tensor convolution(ConstTensorView features, ConstTensorView weight, const KernelMapView& map,
                   const ConvolutionOptions& options = {}, const Place& place = {});

/// Gradient of the features: grad_output [map.out_rows, C_out] → [map.in_rows, C_in]. `map` is the
/// forward map; its transpose is taken here. The epilogue's residual, where defined, is added: what
/// reached the same features on another way.
Tensor convolution_input_gradient(ConstTensorView grad_output, ConstTensorView weight,
                                  const KernelMapView& map, const ConvolutionOptions& options = {},
                                  const Place& place = {});

/// Gradient of the weight, [K, C_in / groups, C_out], of the features' type or f32. Kernels that
/// add need not clear a place that holds zeros, so that the gradients of many layers can be cleared
/// at once.
Tensor convolution_weight_gradient(ConstTensorView features, ConstTensorView grad_output,
                                   const KernelMapView& map, const ConvolutionOptions& options = {},
                                   const Place& place = {});

/// Gradient of a bias: the sum over rows, compute type [C]. `rows`: how many of them are in use, as
/// the set of the outputs says; null: all. The bits do not depend on how many others there are.
Tensor bias_gradient(ConstTensorView grad_output, const RowCount* rows = nullptr,
                     const Place& place = {});

}   // namespace pumice
