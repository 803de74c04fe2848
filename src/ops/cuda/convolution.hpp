// Convolutions and linear layers on CUDA, exactly as a plan says. Arguments and plans are checked
// by the caller.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <pumice/formats/relation.hpp>
#include <pumice/ops/convolution.hpp>

#include "kernels/cuda/planned_kernel.hpp"

namespace pumice::cuda {

struct TileProduct {
  ConstTensorView input;      // [in rows, C_in]
  ConstTensorView second{};   // [in rows, the last of C_in], which `input` then lacks; or undefined
  ConstTensorView weight;     // [K, C_in / groups, C_out], or transposed [K, C_out, C_in]
  bool transpose_weight = false;
  PackedWeights* kept = nullptr;   // packed weights of earlier calls; null: packed for this one
  Shortcut shortcut{};             // like `second`, where the plan fuses inputs
  Epilogue epilogue{};
  TensorView output;   // [out rows, C_out]
  /// Without a map: how many rows are in use; the others are neither read nor written. None: all.
  std::optional<RowCountRef> rows{};
};

/// Enqueues the product on the stream of its input. `relation` null: position = row, which
/// depthwise products do not take.
void run(const TileProduct& product, const RelationView* relation,
         const ConvolutionProblem& problem, const ConvolutionPlan& plan);

struct WeightProduct {
  ConstTensorView features;      // [in rows, C_in]
  ConstTensorView grad_output;   // [out rows, C_out]
  TensorView result;      // [K, C_in / groups, C_out], of the features' type or f32; linear: no K
  bool is_zero = false;   // the result, when the product starts
  std::optional<RowCountRef> rows{};   // without a map, as above; the others are not read
};

/// Enqueues a weight gradient on the stream of its features. `relation` null: every row meets
/// itself, which depthwise products do not take.
void run(const WeightProduct& product, const RelationView* relation,
         const ConvolutionProblem& problem, const ConvolutionPlan& plan);

/// Every kernel that such problems ask for, with any number of rows, on any device of
/// `architecture` (a bit of tile_limits.h), where nothing was measured and no dataflow is asked
/// for.
std::vector<PlannedKernel> kernels_for(const ConvolutionProblem& problem,
                                       std::uint32_t architecture);
/// The products that `plan` asks for; none where it is a plan of a CPU or of other architectures.
std::vector<PlannedKernel> kernels_of(const ConvolutionPlan& plan,
                                      const ConvolutionProblem& problem,
                                      std::uint32_t architecture);

}   // namespace pumice::cuda
