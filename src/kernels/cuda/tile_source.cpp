// Prints a specification as C++. The device asserts that it reads what the host wrote: the same
// fingerprint, the same shared memory, argument structs of the same size.
#include "kernels/cuda/tile_source.hpp"

#include <fmt/format.h>

#include <pumice/shared/depthwise_arguments.h>
#include <pumice/shared/gather_arguments.h>
#include <pumice/shared/pack_weight.h>
#include <pumice/shared/tile_arguments.h>
#include <pumice/shared/tile_limits.h>
#include <pumice/core/error.hpp>

#include "plan/spec_names.hpp"

namespace pumice::cuda {
namespace {

/// The skeleton that runs a spec: a header and a function of the same name.
const char* skeleton_of(const TileSpec& spec) {
  if (spec.resident_offsets > 0) return "tile_direct";
  switch (spec.instruction) {
    case Instruction::fma: return "tile_fma";
    case Instruction::mma_sync: return "tile_mma_sync";
    case Instruction::wgmma: return "tile_wgmma";
  }
  return "?";
}

std::string print_spec(const TileSpec& spec) {
  return fmt::format(
      "inline constexpr pumice::TileSpec kSpec{{\n"
      "    .instruction = pumice::Instruction::{}, .operand = pumice::ElementType::{},\n"
      "    .output = pumice::ElementType::{}, .gather = pumice::Gather::{},\n"
      "    .write = pumice::Write::{}, .in_channels = {}, .first_channels = {},\n"
      "    .out_channels = {}, .groups = {}, .shortcut_channels = {},\n"
      "    .shortcut_first_channels = {}, .tile_rows = {}, .tile_columns = {},\n"
      "    .tile_depth = {}, .stages = {}, .row_warps = {}, .column_warps = {},\n"
      "    .blocks_per_sm = {}, .resident_offsets = {}, .affine = {}, .residual = {},\n"
      "    .activations = pumice::ActivationSet::{}}};\n",
      name_of(spec.instruction), name_of(spec.operand), name_of(spec.output), name_of(spec.gather),
      name_of(spec.write), spec.in_channels, spec.first_channels, spec.out_channels, spec.groups,
      spec.shortcut_channels, spec.shortcut_first_channels, spec.tile_rows, spec.tile_columns,
      spec.tile_depth, spec.stages, spec.row_warps, spec.column_warps, spec.blocks_per_sm,
      spec.resident_offsets, spec.affine, spec.residual, name_of(spec.activations));
}

}   // namespace

std::string tile_name(const TileSpec& spec) {
  std::string name =
      fmt::format("{}{}_{}_{}x{}_{}x{}x{}_s{}_w{}x{}", name_of(spec.instruction),
                  spec.resident_offsets > 0 ? "_resident" : "", name_of(spec.operand),
                  spec.in_channels, spec.out_channels, spec.tile_rows, spec.tile_columns,
                  spec.tile_depth, spec.stages, spec.row_warps, spec.column_warps);
  if (spec.blocks_per_sm > 1) name += fmt::format("_b{}", spec.blocks_per_sm);
  if (spec.output != spec.operand) name += fmt::format("_to_{}", name_of(spec.output));
  if (spec.write != Write::store) name += fmt::format("_{}", name_of(spec.write));
  if (spec.gather != Gather::map) name += "_identity";
  if (spec.first_channels != spec.in_channels) name += fmt::format("_of{}", spec.first_channels);
  if (spec.shortcut_channels > 0) {
    name += fmt::format("_shortcut{}of{}", spec.shortcut_channels, spec.shortcut_first_channels);
  }
  if (spec.groups > 1) name += fmt::format("_g{}", spec.groups);
  if (spec.activations == ActivationSet::all) name += "_all";
  if (!spec.affine) name += "_noaffine";
  if (!spec.residual) name += "_noresidual";
  return name;
}

std::string tile_source(const TileSpec& spec) {
  const char* why = why_invalid(spec);
  PUMICE_ENSURES(why == nullptr, "tile spec ", tile_name(spec), ": ", why == nullptr ? "" : why);
  const char* skeleton = skeleton_of(spec);
  return fmt::format(
      "{8}"
      "#include <pumice/skeleton/{0}.h>\n"
      "{1}"
      "static_assert(pumice::fingerprint(kSpec) == {2}u);\n"
      "static_assert(pumice::shared_bytes(kSpec) == {3} && pumice::threads(kSpec) == {4});\n"
      "static_assert(sizeof(pumice::TileArguments) == {5});\n"
      "PUMICE_KERNEL void __launch_bounds__({4}, {6})\n"
      "{7}(PUMICE_ARGUMENT(pumice::TileArguments) arguments) {{\n"
      "  pumice::wait_unless(arguments.reads_ahead);\n"
      "  pumice::{0}<kSpec>(arguments);\n"
      "}}\n",
      skeleton, print_spec(spec), fingerprint(spec), shared_bytes(spec), threads(spec),
      sizeof(TileArguments), spec.blocks_per_sm, kTileKernel,
      instruction_choice(spec.instruction, spec.tile_columns));
}

std::string finish_source(ElementType output) {
  return fmt::format(
      "#include <pumice/skeleton/finish_pairs.h>\n"
      "#include <pumice/skeleton/finish_partial.h>\n"
      "static_assert(sizeof(pumice::FinishArguments) == {0});\n"
      "static_assert(sizeof(pumice::FinishPairsArguments) == {1});\n"
      "PUMICE_KERNEL void {2}(PUMICE_ARGUMENT(pumice::FinishArguments) arguments) {{\n"
      "  pumice::wait_for_previous();\n"
      "  pumice::finish_partial<pumice::ElementType::{4}>(arguments);\n"
      "}}\n"
      "PUMICE_KERNEL void {3}(PUMICE_ARGUMENT(pumice::FinishPairsArguments) arguments) {{\n"
      "  pumice::wait_for_previous();\n"
      "  pumice::finish_pairs<pumice::ElementType::{4}>(arguments);\n"
      "}}\n",
      sizeof(FinishArguments), sizeof(FinishPairsArguments), kFinishKernel, kFinishPairsKernel,
      name_of(output));
}

std::string gather_scatter_source() {
  return fmt::format(
      "#include <pumice/skeleton/gather_scatter.h>\n"
      "static_assert(sizeof(pumice::GatherRowsArguments) == {});\n"
      "static_assert(sizeof(pumice::ScatterAddArguments) == {});\n",
      sizeof(GatherRowsArguments), sizeof(ScatterAddArguments));
}

std::string pack_source() {
  return fmt::format(
      "#include <pumice/skeleton/pack_weight.h>\n"
      "static_assert(sizeof(pumice::PackWeightArguments) == {});\n"
      "static_assert(sizeof(pumice::PackWeightsArguments) == {});\n",
      sizeof(PackWeightArguments), sizeof(PackWeightsArguments));
}

std::string depthwise_source(ElementType type) {
  return fmt::format(
      "#include <pumice/skeleton/depthwise.h>\n"
      "#include <pumice/skeleton/depthwise_gradient.h>\n"
      "static_assert(sizeof(pumice::DepthwiseArguments) == {0});\n"
      "static_assert(sizeof(pumice::DepthwiseGradientArguments) == {1});\n"
      "PUMICE_KERNEL void __launch_bounds__({2})\n"
      "{3}(PUMICE_ARGUMENT(pumice::DepthwiseArguments) arguments) {{\n"
      "  pumice::wait_for_previous();\n"
      "  pumice::depthwise<pumice::ElementType::{5}>(arguments);\n"
      "}}\n"
      "PUMICE_KERNEL void __launch_bounds__({2})\n"
      "{4}(PUMICE_ARGUMENT(pumice::DepthwiseGradientArguments) arguments) {{\n"
      "  pumice::wait_for_previous();\n"
      "  pumice::depthwise_gradient<pumice::ElementType::{5}>(arguments);\n"
      "}}\n",
      sizeof(DepthwiseArguments), sizeof(DepthwiseGradientArguments), kDepthwiseThreads,
      kDepthwiseKernel, kDepthwiseGradientKernel, name_of(type));
}

std::string depthwise_partial_source(ElementType type, Write write) {
  return fmt::format(
      "#include <pumice/skeleton/depthwise.h>\n"
      "static_assert(sizeof(pumice::DepthwiseArguments) == {0});\n"
      "PUMICE_KERNEL void __launch_bounds__({1})\n"
      "{2}(PUMICE_ARGUMENT(pumice::DepthwiseArguments) arguments) {{\n"
      "  pumice::wait_for_previous();\n"
      "  pumice::depthwise<pumice::ElementType::{3}, pumice::Write::{4}>(arguments);\n"
      "}}\n",
      sizeof(DepthwiseArguments), kDepthwiseThreads, kDepthwiseKernel, name_of(type),
      name_of(write));
}

}   // namespace pumice::cuda
