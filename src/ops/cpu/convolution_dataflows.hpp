// The dataflows of a planned product on the CPU: each cuts the structure its way and runs its
// skeleton.
#pragma once

#include <pumice/formats/relation.hpp>
#include <pumice/kernels/packed_weights.hpp>
#include <pumice/kernels/tile_mma.hpp>
#include <pumice/plan/convolution_plan.hpp>

namespace pumice::cpu {

/// output[out] = epilogue(Σ input[in] · W[k]) over the pairs of a relation; with
/// `transpose_weight`, Wᵀ.
struct SparseProduct {
  ConstTensorView input;
  ConstTensorView weight;   // [K, C_in / groups, C_out] of the forward convolution
  bool transpose_weight = false;
  std::int64_t groups = 1;
  PackedWeights* kept = nullptr;   // packed weights of earlier calls; null: packed for this one
  Epilogue epilogue{};
  TensorView output;
};

/// By the plan's dataflow.
void run(const SparseProduct& product, const RelationView& relation, const ConvolutionPlan& plan);

}   // namespace pumice::cpu
