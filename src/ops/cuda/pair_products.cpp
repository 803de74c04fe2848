// The dataflows that multiply pair by pair and add products up in memory.
#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>

#include "formats/cuda/device_formats.hpp"
#include "kernels/cuda/gather_gemm_scatter.hpp"
#include "kernels/cuda/gradient_launch.hpp"
#include "kernels/cuda/packed_tiles.hpp"
#include "kernels/cuda/tile_launch.hpp"
#include "kernels/cuda/tile_source.hpp"
#include "ops/cuda/product_steps.hpp"
#include "ops/cuda/sources.hpp"
#include "plan/space/device_problem.hpp"

namespace pumice::cuda {
namespace {

/// Hands `multiply` the partial result to write, f32, and finishes it.
template <class Multiply>
void add_up(jit::KernelRunner& runner, const TileProduct& product, const RelationView& relation,
            const TileMapRef& tiles, Write write, Multiply&& multiply) {
  const SumTarget target = target_of(product, tiles.out_rows);
  if (write == Write::slots) {
    SeparateSums sums(runner, target, pairs_of(relation).pairs.capacity, pair_index_of(relation),
                      tiles.offsets);
    multiply(sums.data());
    sums.finish(runner, tiles.tiles);
  } else {
    PartialSums sums(runner, target);
    multiply(sums.data());
    sums.finish(runner, tiles.tiles);
  }
}

void depthwise_on_demand(const TileProduct& product, const RelationView& relation, Write write) {
  const ElementType type = element_type(product.output.dtype(), "convolution", "features");
  if (product.output.elements() == 0) return;
  jit::DeviceRunner runner = runner_for(product.input);
  const TileMapRef& tiles =
      pair_tiles_of(relation, {.tile_rows = kDepthwiseTileRows, .own_rows = write == Write::slots});
  add_up(runner, product, relation, tiles, write, [&](float* partial) {
    launch_depthwise(runner, type,
                     {.map = tiles,
                      .input = product.input.raw(),
                      .weight = product.weight.raw(),
                      .output = partial,
                      .channels = static_cast<std::int32_t>(product.output.extent(1))},
                     write);
  });
}

}   // namespace

void fetch_on_demand(const TileProduct& product, const RelationView& relation,
                     const ConvolutionProblem& problem, const ConvolutionPlan& plan) {
  if (problem.is_depthwise()) return depthwise_on_demand(product, relation, plan.write);
  const TileSpec spec = tile_spec(problem, plan);
  if (product.output.elements() == 0) return;
  jit::DeviceRunner runner = runner_for(product.input);
  const WeightsInUse weights(product.kept);
  const TileMapRef& tiles = pair_tiles_of(
      relation, {.tile_rows = spec.tile_rows, .own_rows = plan.write == Write::slots});
  const auto offsets = static_cast<std::int32_t>(problem.offsets);
  const void* const weight =
      weights->tiles().get(runner, weight_layout(spec, offsets), product.weight,
                           {.transpose = product.transpose_weight});
  add_up(runner, product, relation, tiles, plan.write, [&](float* partial) {
    launch_tiles(runner, spec,
                 {.map = tiles, .input = product.input.raw(), .weight = weight, .output = partial});
  });
}

void gather_gemm_scatter(const TileProduct& product, const RelationView* relation,
                         const ConvolutionProblem& problem) {
  const StreamView stream = product.input.stream();
  PUMICE_EXPECTS(!is_capturing(stream),
                 "dataflow gather_gemm_scatter waits for the numbers of "
                 "pairs, which cannot be done while a graph is recorded; choose fetch_on_demand or "
                 "implicit_gemm");
  MatrixProducts& products = cublas_products(stream.device);
  const auto groups = static_cast<std::int32_t>(problem.groups);
  const MatrixShape shape{.in_channels = static_cast<std::int32_t>(problem.in_channels) / groups,
                          .out_channels = static_cast<std::int32_t>(problem.out_channels) / groups,
                          .groups = groups,
                          .operand = operand_type(problem.dtype, problem.numerics.tf32),
                          .transpose_weight = product.transpose_weight};
  if (product.output.elements() == 0) return;
  jit::DeviceRunner runner = runner_for(product.input);
  if (relation == nullptr) {
    multiply_rows(runner, products,
                  {.rows = product.input.rows(),
                   .shape = shape,
                   .input = product.input.raw(),
                   .weight = product.weight.raw()},
                  target_of(product, {nullptr, product.output.rows()}));
    return;
  }
  PUMICE_ENSURES(relation->formats != nullptr, "a relation that nothing is cut of");
  cuda::gather_gemm_scatter(runner, products,
                            {.pairs = pairs_of(*relation),
                             .offset_begin = relation->formats->wait_for_pair_counts(),
                             .shape = shape,
                             .input = product.input.raw(),
                             .weight = product.weight.raw(),
                             .target = target_of(product, output_rows_of(*relation))});
}

}   // namespace pumice::cuda
