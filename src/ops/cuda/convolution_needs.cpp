// Cuts and forms of weights by dataflow.
#include "ops/cuda/convolution_needs.hpp"

#include <pumice/core/error.hpp>

#include "kernels/cuda/tile_source.hpp"
#include "ops/cuda/product_steps.hpp"
#include "plan/space/device_problem.hpp"

namespace pumice::cuda {

TileCut tile_cut(const ConvolutionProblem& problem, const ConvolutionPlan& plan) {
  if (problem.is_depthwise()) return {.tile_rows = kDepthwiseTileRows};
  return {
      .tile_rows = plan.tile->tile_rows, .splits = plan.splits, .sort_by_mask = plan.sort_by_mask};
}

std::optional<CutWanted> cut_of(const ConvolutionProblem& problem, const ConvolutionPlan& plan,
                                const KernelMapView& map) {
  const bool is_product = problem.direction != Direction::weight_gradient;
  if (is_product && problem.identity && !problem.is_depthwise()) return std::nullopt;
  CutWanted wanted{.map = map.map, .is_transposed = map.is_transposed};
  if (plan.dataflow == Dataflow::implicit_gemm) wanted.tiles = tile_cut(problem, plan);
  return wanted;
}

std::optional<PackUse> packing_of(const ConvolutionProblem& problem, const ConvolutionPlan& plan) {
  if (!plan.tile) return std::nullopt;   // as weight gradients, depthwise products and cuBLAS
  return PackUse{
      weight_layout(tile_spec(problem, plan), static_cast<std::int32_t>(problem.offsets)),
      {.transpose = problem.direction == Direction::input_gradient}};
}

PackUse shortcut_packing_of(const ConvolutionProblem& problem, const ConvolutionPlan& plan) {
  PUMICE_ENSURES(plan.tile && plan.fuses_inputs, "plan ", plan.name(), " reads no shortcut");
  return {shortcut_weight_layout(tile_spec(problem, plan)), {}};
}

}   // namespace pumice::cuda
