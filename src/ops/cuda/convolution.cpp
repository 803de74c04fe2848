// Describe the product, choose a kernel, find its map and weights, launch.
#include "ops/cuda/convolution.hpp"

#include <algorithm>
#include <utility>

#include <pumice/shared/tile_limits.h>
#include <pumice/core/error.hpp>

#include "kernels/cuda/architecture.hpp"
#include "kernels/cuda/chosen_kernel.hpp"
#include "kernels/cuda/gradient_launch.hpp"
#include "kernels/cuda/gradient_source.hpp"
#include "kernels/cuda/gradient_table.hpp"
#include "kernels/cuda/packed_tiles.hpp"
#include "kernels/cuda/spec_table.hpp"
#include "kernels/cuda/tile_launch.hpp"
#include "kernels/cuda/tile_source.hpp"
#include "maps/cuda/identity_pairs.hpp"
#include "maps/cuda/map_structures.hpp"
#include "ops/cuda/elementwise.hpp"
#include "ops/cuda/sources.hpp"
#include "ops/cuda/tile_problem.hpp"

namespace pumice::cuda {
namespace {

Gather gather_of(bool has_map) {
  return has_map ? Gather::map : Gather::identity;
}

GradientProblem describe(const WeightProduct& product, std::int32_t offsets,
                         std::uint32_t architecture) {
  const auto groups = static_cast<std::int32_t>(product.groups);
  return {.operand = operand_type(product.features.dtype(), product.tf32, "weight gradient"),
          .write = product.deterministic ? Write::slots : Write::add,
          .in_channels = static_cast<std::int32_t>(product.features.extent(1)) / groups,
          .out_channels = static_cast<std::int32_t>(product.grad_output.extent(1)) / groups,
          .groups = groups,
          .offsets = offsets,
          .architecture = architecture};
}

std::string run_depthwise(const TileProduct& product, const KernelMapView* map) {
  PUMICE_ENSURES(map != nullptr, "a depthwise product without a map");
  const ElementType type = element_type(product.output.dtype(), "convolution", "features");
  if (product.output.elements() == 0) return kDepthwiseKernel;
  jit::DeviceRunner runner = runner_for(product.input);
  launch_depthwise(runner, type,
                   {.map = map->map->structures()->tiles(*map, kDepthwiseTileRows, 1),
                    .input = product.input.raw(),
                    .weight = product.weight.raw(),
                    .output = product.output.raw(),
                    .channels = static_cast<std::int32_t>(product.groups),
                    .epilogue = epilogue_of(product.epilogue)});
  return kDepthwiseKernel;
}

std::string sum_over(const WeightProduct& product, const PairListRef& pairs,
                     jit::KernelRunner& runner) {
  const ElementType type = element_type(product.features.dtype(), "weight gradient", "features");
  const ElementType result_type = element_type(product.result.dtype(), "weight gradient", "result");
  const auto in_channels = static_cast<std::int32_t>(product.features.extent(1));
  const std::uint32_t architecture = architecture_bit(product.features.device());
  if (is_depthwise(product.groups, in_channels, product.grad_output.extent(1))) {
    PUMICE_EXPECTS(
        depthwise_gradient_shared_bytes(pairs.offsets) <= block_shared_limit(architecture),
        "no weight gradient kernel for a depthwise convolution of ", pairs.offsets,
        " offsets: their table does not fit into the memory that a thread block has, so "
        "use a smaller kernel, or the CPU");
    launch_depthwise_gradient(runner, type,
                              {.pairs = pairs,
                               .input = product.features.raw(),
                               .grad = product.grad_output.raw(),
                               .channels = in_channels},
                              result_type, product.result.raw());
    return kDepthwiseGradientKernel;
  }
  const auto& [spec, source] = chosen_gradient(describe(product, pairs.offsets, architecture));
  WeightGradient gradient{.pairs = pairs,
                          .input = product.features.raw(),
                          .grad = product.grad_output.raw(),
                          .result = product.result.raw(),
                          .type = result_type,
                          .is_zero = product.is_zero};
  if (product.deterministic || result_type == ElementType::f32) {
    launch_gradient(runner, spec, *source, gradient);
  } else {
    Tensor sums(product.result.shape(), DType::f32, product.result.stream());
    gradient.result = sums.raw();
    gradient.type = ElementType::f32;
    gradient.is_zero = false;
    launch_gradient(runner, spec, *source, gradient);
    convert(sums, 1.0, product.result);
  }
  return source->name;
}

}   // namespace

std::string run(const TileProduct& product, const KernelMapView* map) {
  if (is_depthwise(product.groups, product.input.extent(1), product.output.extent(1)))
    return run_depthwise(product, map);
  const std::uint32_t architecture = architecture_bit(product.input.device());
  const auto& [spec, source] =
      chosen_tile(describe(product, gather_of(map != nullptr), architecture));
  if (product.output.elements() == 0) return source->name;
  jit::DeviceRunner runner = runner_for(product.input);
  TileWeights for_this_call;
  TileWeights shortcut_for_this_call;
  const auto packed_in = [](TileWeights* kept, TileWeights& otherwise) -> PackedTiles& {
    return (kept == nullptr ? otherwise : *kept).packed();
  };
  const auto offsets = static_cast<std::int32_t>(product.weight.extent(0));
  TileArguments arguments{.map = map == nullptr
                                     ? identity_map(product)
                                     : map->map->structures()->tiles(*map, spec.tile_rows, 1),
                          .input = product.input.raw(),
                          .second = product.second.raw(),
                          .output = product.output.raw(),
                          .epilogue = epilogue_of(product.epilogue)};
  PackOrder order{.transpose = product.transpose_weight};
  const Shortcut& shortcut = product.shortcut;
  if (shortcut.features.defined()) {
    // Both products share a sum, so that each takes its scale along in its weights.
    order.scale = std::exchange(arguments.epilogue.scale, nullptr);
    arguments.shortcut = shortcut.features.raw();
    arguments.shortcut_second = shortcut.second.raw();
    arguments.shortcut_weight =
        packed_in(shortcut.tile_weights, shortcut_for_this_call)
            .get(runner, shortcut_weight_layout(spec), shortcut.weight,
                 {.scale = static_cast<const float*>(shortcut.scale.raw())});
  }
  arguments.weight = packed_in(product.kept, for_this_call)
                         .get(runner, weight_layout(spec, offsets), product.weight, order);
  launch_tiles(runner, spec, *source, arguments);
  return source->name;
}

std::string run(const WeightProduct& product, const KernelMapView* map) {
  jit::DeviceRunner runner = runner_for(product.features);
  if (map != nullptr) return sum_over(product, map->map->structures()->pairs(*map), runner);
  const IdentityPairs pairs(runner, {nullptr, product.features.rows()});
  return sum_over(product, pairs.ref(), runner);
}

std::vector<PlannedKernel> kernels_for(const TileProduct& product, bool has_map,
                                       std::uint32_t architecture) {
  if (is_depthwise(product.groups, product.input.extent(1), product.output.extent(1)))
    return {planned_depthwise(element_type(product.output.dtype(), "convolution", "features"))};
  std::vector<PlannedKernel> kernels{planned_packing()};
  for (const TileSpec& spec : pickable_tiles(describe(product, gather_of(has_map), architecture)))
    kernels.push_back(planned(spec));
  return kernels;
}

std::vector<PlannedKernel> kernels_for(const WeightProduct& product, std::uint32_t architecture) {
  const ElementType type = element_type(product.features.dtype(), "weight gradient", "features");
  const auto in_channels = product.features.extent(1);
  if (is_depthwise(product.groups, in_channels, product.grad_output.extent(1)))
    return {planned_depthwise(type), planned_sums(type)};
  const bool is_linear = product.result.shape().rank() == 2;
  const auto offsets = is_linear ? 1 : static_cast<std::int32_t>(product.result.extent(0));
  std::vector<PlannedKernel> kernels{
      planned(choose_gradient(describe(product, offsets, architecture)))};
  if (product.deterministic) kernels.push_back(planned_sums(type));
  return kernels;
}

}   // namespace pumice::cuda
