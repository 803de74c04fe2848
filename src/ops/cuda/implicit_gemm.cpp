// Outputs in tiles whose sums stay in registers: find the map and the weights, launch, and finish
// what splits of the offsets left behind.
#include <optional>
#include <utility>

#include "formats/cuda/device_formats.hpp"
#include "kernels/cuda/gradient_launch.hpp"
#include "kernels/cuda/packed_tiles.hpp"
#include "kernels/cuda/tile_launch.hpp"
#include "kernels/cuda/tile_source.hpp"
#include "ops/cuda/convolution_needs.hpp"
#include "ops/cuda/product_steps.hpp"
#include "ops/cuda/sources.hpp"
#include "plan/space/device_problem.hpp"

namespace pumice::cuda {
namespace {

void depthwise(const TileProduct& product, const RelationView& relation,
               const ConvolutionProblem& problem, const ConvolutionPlan& plan) {
  const ElementType type = element_type(product.output.dtype(), "convolution", "features");
  if (product.output.elements() == 0) return;
  jit::DeviceRunner runner = runner_for(product.input);
  launch_depthwise(runner, type,
                   {.map = tiles_of(relation, tile_cut(problem, plan)),
                    .input = product.input.raw(),
                    .weight = product.weight.raw(),
                    .output = product.output.raw(),
                    .channels = static_cast<std::int32_t>(product.output.extent(1)),
                    .epilogue = epilogue_of(product.epilogue)});
}

}   // namespace

EpilogueArguments epilogue_of(const Epilogue& epilogue) {
  return {.scale = static_cast<const float*>(epilogue.scale.raw()),
          .shift = static_cast<const float*>(epilogue.shift.raw()),
          .residual = epilogue.residual.raw(),
          .slope = static_cast<float>(epilogue.slope),
          .activation = epilogue.activation};
}

TileMapRef identity_map(const TileProduct& product) {
  TileMapRef map;
  map.in_rows = product.rows.value_or(RowCountRef{nullptr, product.input.rows()});
  map.out_rows = product.rows.value_or(RowCountRef{nullptr, product.output.rows()});
  map.offsets = 1;
  return map;
}

SumTarget target_of(const TileProduct& product, const RowCountRef& out_rows) {
  return {.output = product.output.raw(),
          .type = element_type(product.output.dtype(), "convolution", "output"),
          .out_rows = out_rows,
          .channels = static_cast<std::int32_t>(product.output.extent(1)),
          .epilogue = epilogue_of(product.epilogue)};
}

void implicit_gemm(const TileProduct& product, const RelationView* relation,
                   const ConvolutionProblem& problem, const ConvolutionPlan& plan) {
  if (problem.is_depthwise()) return depthwise(product, *relation, problem, plan);
  const TileSpec spec = tile_spec(problem, plan);
  if (product.output.elements() == 0) return;
  jit::DeviceRunner runner = runner_for(product.input);
  TileArguments arguments{.map = relation == nullptr ? identity_map(product)
                                                     : tiles_of(*relation, tile_cut(problem, plan)),
                          .input = product.input.raw(),
                          .second = product.second.raw(),
                          .output = product.output.raw(),
                          .epilogue = epilogue_of(product.epilogue)};
  const WeightsInUse weight(product.kept);
  std::optional<WeightsInUse> shortcut_weight;   // lives until the launch
  PackOrder order{.transpose = product.transpose_weight};
  const Shortcut& shortcut = product.shortcut;
  if (shortcut.features.defined()) {
    // Both products share a sum, so that each takes its scale along in its weights.
    order.scale = std::exchange(arguments.epilogue.scale, nullptr);
    arguments.shortcut = shortcut.features.raw();
    arguments.shortcut_second = shortcut.second.raw();
    arguments.shortcut_weight =
        shortcut_weight.emplace(shortcut.kept)
            ->tiles()
            .get(runner, shortcut_weight_layout(spec), shortcut.weight,
                 {.scale = static_cast<const float*>(shortcut.scale.raw())});
  }
  const auto offsets = static_cast<std::int32_t>(problem.offsets);
  arguments.weight =
      weight->tiles().get(runner, weight_layout(spec, offsets), product.weight, order);
  if (plan.write == Write::store) return launch_tiles(runner, spec, arguments);
  SumTarget target = target_of(product, arguments.map.out_rows);
  target.epilogue = std::exchange(arguments.epilogue, {});
  PartialSums sums(runner, target, plan.write, plan.splits);
  arguments.output = sums.data();
  launch_tiles(runner, spec, arguments);
  sums.finish(runner, arguments.map.tiles);
}

}   // namespace pumice::cuda
