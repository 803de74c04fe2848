// The three dataflows: which structure is cut, and which skeleton runs on it.
#include "ops/cpu/convolution_dataflows.hpp"

#include <pumice/core/error.hpp>
#include <pumice/formats/output_table.hpp>
#include <pumice/formats/relation_tiles.hpp>
#include <pumice/kernels/gather_gemm_scatter.hpp>

#include "ops/cpu/convolution_sums.hpp"

namespace pumice::cpu {
namespace {

void run_gather_gemm_scatter(const SparseProduct& product, const RelationView& relation,
                             const ConvolutionPlan& plan) {
  const RelationTiles tiles(relation, plan.tile_rows);
  gather_gemm_scatter({.input = product.input,
                       .weight = product.weight,
                       .groups = product.groups,
                       .transpose_weight = product.transpose_weight,
                       .tiles = tiles.view(),
                       .epilogue = product.epilogue,
                       .output = product.output});
}

void run_fetch_on_demand(const SparseProduct& product, const WeightPanels& weight,
                         const RelationView& relation, const ConvolutionPlan& plan) {
  const RelationTiles tiles(relation, plan.tile_rows);
  tile_mma({.input = product.input,
            .weight = &weight,
            .tiles = tiles.view(),
            .epilogue = product.epilogue,
            .output = product.output});
}

void run_implicit_gemm(const SparseProduct& product, const WeightPanels& weight,
                       const RelationView& relation, const ConvolutionPlan& plan) {
  const OutputTable table(relation, plan.sort_by_mask, plan.splits);
  if (table.splits() == 1) {
    const RelationTiles tiles = table.tiles(0, plan.tile_rows);
    tile_mma({.input = product.input,
              .weight = &weight,
              .tiles = tiles.view(),
              .epilogue = product.epilogue,
              .output = product.output});
    return;
  }
  const DType compute = product.output.dtype() == DType::f64 ? DType::f64 : DType::f32;
  Tensor sums = Tensor::zeros(product.output.shape(), compute);
  for (int split = 0; split < table.splits(); ++split) {
    const RelationTiles tiles = table.tiles(split, plan.tile_rows);
    tile_mma({.input = product.input,
              .weight = &weight,
              .tiles = tiles.view(),
              .output = product.output,
              .partial = sums.view()});
  }
  finish_rows(sums, product.epilogue, product.output);
}

}   // namespace

void run(const SparseProduct& product, const RelationView& relation, const ConvolutionPlan& plan) {
  if (plan.dataflow == Dataflow::gather_gemm_scatter) {
    return run_gather_gemm_scatter(product, relation, plan);
  }
  const WeightsInUse weights(product.kept);
  const WeightPanels& weight =
      weights->panels(product.weight, product.groups, product.transpose_weight);
  if (plan.dataflow == Dataflow::implicit_gemm) {
    return run_implicit_gemm(product, weight, relation, plan);
  }
  PUMICE_ENSURES(plan.dataflow == Dataflow::fetch_on_demand, "a dataflow that is not known");
  run_fetch_on_demand(product, weight, relation, plan);
}

}   // namespace pumice::cpu
