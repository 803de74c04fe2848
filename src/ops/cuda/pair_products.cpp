// The dataflows that multiply pair by pair and add products up in memory.
#include <algorithm>

#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>

#include "core/environment.hpp"
#include "kernels/cuda/architecture.hpp"
#include "kernels/cuda/gather_gemm_scatter.hpp"
#include "kernels/cuda/gradient_launch.hpp"
#include "kernels/cuda/packed_tiles.hpp"
#include "kernels/cuda/pair_sums.hpp"
#include "kernels/cuda/spec_names.hpp"
#include "kernels/cuda/tile_launch.hpp"
#include "kernels/cuda/tile_source.hpp"
#include "maps/cuda/map_structures.hpp"
#include "ops/cuda/sources.hpp"
#include "ops/cuda/tile_problem.hpp"

namespace pumice::cuda {
namespace {

/// Pairs that an output has in scans, 4 to 13 of 27: for the choice of a tile alone.
constexpr std::int64_t kLikelyPairs = 8;

SumTarget target_of(const TileProduct& product, const RowCountRef& out_rows) {
  return {.output = product.output.raw(),
          .type = element_type(product.output.dtype(), "convolution", "output"),
          .out_rows = out_rows,
          .channels = static_cast<std::int32_t>(product.output.extent(1)),
          .epilogue = epilogue_of(product.epilogue)};
}

/// Hands `multiply` the partial result to write, f32, and finishes it.
template <class Multiply>
void add_up(jit::KernelRunner& runner, const TileProduct& product, const KernelMapView& map,
            const TileMapRef& tiles, Multiply&& multiply) {
  const SumTarget target = target_of(product, tiles.out_rows);
  MapStructures& structures = *map.map->structures();
  if (product.deterministic) {
    SeparateSums sums(runner, target, structures.pairs(map).pairs.capacity,
                      structures.pair_index(map), tiles.offsets);
    multiply(sums.data());
    sums.finish(runner, tiles.tiles);
  } else {
    AddedSums sums(runner, target);
    multiply(sums.data());
    sums.finish(runner, tiles.tiles);
  }
}

std::string depthwise_on_demand(const TileProduct& product, const KernelMapView& map, Write write) {
  const ElementType type = element_type(product.output.dtype(), "convolution", "features");
  const std::string name =
      std::string(kDepthwiseKernel) + "_" + (write == Write::add ? "add" : "slots");
  if (product.output.elements() == 0) return name;
  jit::DeviceRunner runner = runner_for(product.input);
  const TileMapRef& tiles = map.map->structures()->pair_tiles(
      map, {.tile_rows = kDepthwiseTileRows, .own_rows = product.deterministic});
  add_up(runner, product, map, tiles, [&](float* partial) {
    launch_depthwise(runner, type,
                     {.map = tiles,
                      .input = product.input.raw(),
                      .weight = product.weight.raw(),
                      .output = partial,
                      .channels = static_cast<std::int32_t>(product.groups)},
                     write);
  });
  return name;
}

}   // namespace

std::string fetch_on_demand(const TileProduct& product, const KernelMapView& map) {
  const Write write = product.deterministic ? Write::slots : Write::add;
  if (is_depthwise(product.groups, product.input.extent(1), product.output.extent(1)))
    return depthwise_on_demand(product, map, write);
  TileProblem problem =
      describe(product, Gather::map, architecture_bit(product.input.device()), write);
  problem.output = problem.operand == ElementType::tf32 ? ElementType::f32 : problem.operand;
  problem.rows *= std::min(problem.offsets, kLikelyPairs) * environment::kernel_rows();
  const TileSpec spec = choose_tile(problem).spec;
  if (product.output.elements() == 0) return tile_name(spec);
  jit::DeviceRunner runner = runner_for(product.input);
  TileWeights for_this_call;
  TileWeights& weights = product.kept == nullptr ? for_this_call : *product.kept;
  const TileMapRef& tiles = map.map->structures()->pair_tiles(
      map, {.tile_rows = spec.tile_rows, .own_rows = product.deterministic});
  const auto offsets = static_cast<std::int32_t>(product.weight.extent(0));
  const void* const weight =
      weights.packed().get(runner, weight_layout(spec, offsets), product.weight,
                           {.transpose = product.transpose_weight});
  add_up(runner, product, map, tiles, [&](float* partial) {
    launch_tiles(runner, spec,
                 {.map = tiles, .input = product.input.raw(), .weight = weight, .output = partial});
  });
  return tile_name(spec);
}

std::string gather_gemm_scatter(const TileProduct& product, const KernelMapView* map) {
  const StreamView stream = product.input.stream();
  PUMICE_EXPECTS(!is_capturing(stream),
                 "dataflow gather_gemm_scatter waits for the numbers of "
                 "pairs, which cannot be done while a graph is recorded; choose fetch_on_demand or "
                 "implicit_gemm");
  MatrixProducts& products = cublas_products(stream.device);
  const auto groups = static_cast<std::int32_t>(product.groups);
  const MatrixShape shape{
      .in_channels = static_cast<std::int32_t>(product.input.extent(1)) / groups,
      .out_channels = static_cast<std::int32_t>(product.output.extent(1)) / groups,
      .groups = groups,
      .operand = operand_type(product.input.dtype(), product.tf32, "convolution"),
      .transpose_weight = product.transpose_weight};
  const std::string name = std::string("cublas_") + name_of(shape.operand);
  if (product.output.elements() == 0) return name;
  jit::DeviceRunner runner = runner_for(product.input);
  if (map == nullptr) {
    multiply_rows(runner, products,
                  {.rows = product.input.rows(),
                   .shape = shape,
                   .input = product.input.raw(),
                   .weight = product.weight.raw()},
                  target_of(product, {nullptr, product.output.rows()}));
    return name;
  }
  MapStructures& structures = *map->map->structures();
  gather_gemm_scatter(runner, products,
                      {.pairs = structures.pairs(*map),
                       .offset_begin = structures.wait_for_pair_counts(*map),
                       .shape = shape,
                       .input = product.input.raw(),
                       .weight = product.weight.raw(),
                       .target = target_of(product, structures.output_rows(*map))});
  return name;
}

}   // namespace pumice::cuda
