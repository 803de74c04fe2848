// What the dataflows of a device share: from a product to the arguments of kernels.
#pragma once

#include <pumice/shared/tile_arguments.h>

#include "jit/kernel_runner.hpp"
#include "kernels/cuda/pair_sums.hpp"
#include "ops/cuda/convolution.hpp"

namespace pumice::cuda {

EpilogueArguments epilogue_of(const Epilogue& epilogue);

/// Every position is a row.
TileMapRef identity_map(const TileProduct& product);

/// Where sums in memory become rows of the output.
SumTarget target_of(const TileProduct& product, const RowCountRef& out_rows);

/// The dataflows, of plans that name them. `relation` null: position = row.
void implicit_gemm(const TileProduct& product, const RelationView* relation,
                   const ConvolutionProblem& problem, const ConvolutionPlan& plan);
void fetch_on_demand(const TileProduct& product, const RelationView& relation,
                     const ConvolutionProblem& problem, const ConvolutionPlan& plan);
/// With products by cuBLAS, of rows gathered into a buffer. Waits once for each map, for its
/// numbers of pairs; UserError while a graph is recorded, and where there is no cuBLAS. The same
/// bits every time.
void gather_gemm_scatter(const TileProduct& product, const RelationView* relation,
                         const ConvolutionProblem& problem);

/// Rows of a tile of depthwise products.
inline constexpr std::int32_t kDepthwiseTileRows = 128;

}   // namespace pumice::cuda
