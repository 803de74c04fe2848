// Describe the product, choose a tile, find its map and weights, launch.
#include "ops/cuda/convolution.hpp"

#include "kernels/cuda/architecture.hpp"
#include "kernels/cuda/packed_tiles.hpp"
#include "kernels/cuda/spec_table.hpp"
#include "kernels/cuda/tile_launch.hpp"
#include "kernels/cuda/tile_source.hpp"
#include "maps/cuda/map_structures.hpp"
#include "ops/cuda/sources.hpp"

namespace pumice::cuda {
namespace {

TileProblem describe(const TileProduct& product, const KernelMapView* map) {
  const auto groups = static_cast<std::int32_t>(product.groups);
  const bool sloped = product.epilogue.activation == Activation::none ||
                      product.epilogue.activation == Activation::relu ||
                      product.epilogue.activation == Activation::leaky_relu;
  return {.operand = element_type(product.input.dtype(), "convolution", "features"),
          .output = element_type(product.output.dtype(), "convolution", "output"),
          .gather = map == nullptr ? Gather::identity : Gather::map,
          .in_channels = static_cast<std::int32_t>(product.input.extent(1)) / groups,
          .out_channels = static_cast<std::int32_t>(product.output.extent(1)) / groups,
          .groups = groups,
          .activations = sloped ? ActivationSet::sloped : ActivationSet::all,
          .rows = product.output.rows(),
          .offsets = product.weight.extent(0),
          .architecture = architecture_bit(product.input.device())};
}

EpilogueArguments epilogue_of(const Epilogue& epilogue) {
  return {.scale = static_cast<const float*>(epilogue.scale.raw()),
          .shift = static_cast<const float*>(epilogue.shift.raw()),
          .residual = epilogue.residual.raw(),
          .slope = static_cast<float>(epilogue.slope),
          .activation = epilogue.activation};
}

TileMapRef identity_map(const TileProduct& product) {
  TileMapRef map;
  map.in_rows = {nullptr, product.input.rows()};
  map.out_rows = {nullptr, product.output.rows()};
  map.offsets = 1;
  return map;
}

}   // namespace

std::string run(const TileProduct& product, const KernelMapView* map) {
  const TileSpec spec = choose_tile(describe(product, map)).spec;
  if (product.output.elements() == 0) return tile_name(spec);
  jit::DeviceRunner runner = runner_for(product.input);
  TileWeights for_this_call;
  TileWeights& weights = product.kept == nullptr ? for_this_call : *product.kept;
  const TileArguments arguments{
      .map = map == nullptr ? identity_map(product)
                            : map->map->structures()->tiles(*map, spec.tile_rows, 1),
      .input = product.input.raw(),
      .weight = weights.packed().get(runner, spec, product.weight,
                                     {.transpose = product.transpose_weight}),
      .output = product.output.raw(),
      .epilogue = epilogue_of(product.epilogue)};
  launch_tiles(runner, spec, arguments);
  return tile_name(spec);
}

}   // namespace pumice::cuda
