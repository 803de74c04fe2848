// Prints a weight gradient's specification as C++, with the same assertions as tile_source.cpp.
#include "kernels/cuda/gradient_source.hpp"

#include <fmt/format.h>

#include <pumice/core/error.hpp>

#include "plan/spec_names.hpp"

namespace pumice::cuda {
namespace {

std::string print_spec(const GradientSpec& spec) {
  return fmt::format(
      "inline constexpr pumice::GradientSpec kSpec{{\n"
      "    .instruction = pumice::Instruction::{}, .operand = pumice::ElementType::{},\n"
      "    .write = pumice::Write::{}, .in_channels = {}, .out_channels = {}, .groups = {},\n"
      "    .tile_in = {}, .tile_out = {}, .tile_pairs = {}, .stages = {}, .in_warps = {},\n"
      "    .out_warps = {}, .blocks_per_sm = {}}};\n",
      name_of(spec.instruction), name_of(spec.operand), name_of(spec.write), spec.in_channels,
      spec.out_channels, spec.groups, spec.tile_in, spec.tile_out, spec.tile_pairs, spec.stages,
      spec.in_warps, spec.out_warps, spec.blocks_per_sm);
}

}   // namespace

std::string gradient_name(const GradientSpec& spec) {
  std::string name =
      fmt::format("gradient_{}_{}_{}x{}_{}x{}x{}_s{}_w{}x{}", name_of(spec.instruction),
                  name_of(spec.operand), spec.in_channels, spec.out_channels, spec.tile_in,
                  spec.tile_out, spec.tile_pairs, spec.stages, spec.in_warps, spec.out_warps);
  if (spec.blocks_per_sm > 1) name += fmt::format("_b{}", spec.blocks_per_sm);
  if (spec.groups > 1) name += fmt::format("_g{}", spec.groups);
  if (spec.write != Write::add) name += fmt::format("_{}", name_of(spec.write));
  return name;
}

std::string gradient_source(const GradientSpec& spec) {
  const char* why = why_invalid(spec);
  PUMICE_ENSURES(why == nullptr, "spec ", gradient_name(spec), ": ", why == nullptr ? "" : why);
  const bool wgmma = spec.instruction == Instruction::wgmma;
  return fmt::format(
      "{0}#include <pumice/skeleton/gradient_{1}.h>\n"
      "{2}"
      "static_assert(pumice::fingerprint(kSpec) == {3}u);\n"
      "static_assert(pumice::shared_bytes(kSpec, 27) == {4} && pumice::threads(kSpec) == {5});\n"
      "static_assert(sizeof(pumice::GradientArguments) == {6});\n"
      "PUMICE_KERNEL void __launch_bounds__({5}, {7})\n"
      "{8}(PUMICE_ARGUMENT(pumice::GradientArguments) arguments) {{\n"
      "  pumice::wait_for_previous();\n"
      "  pumice::gradient_{9}<kSpec>(arguments);\n"
      "}}\n",
      instruction_choice(spec.instruction, spec.tile_out), wgmma ? "wgmma" : "warps",
      print_spec(spec), fingerprint(spec), shared_bytes(spec, 27), threads(spec),
      sizeof(GradientArguments), spec.blocks_per_sm, kGradientKernel, name_of(spec.instruction));
}

std::string sum_slots_source(ElementType output) {
  return fmt::format(
      "#include <pumice/skeleton/sum_slots.h>\n"
      "static_assert(sizeof(pumice::SumSlotsArguments) == {});\n"
      "PUMICE_KERNEL void {}(PUMICE_ARGUMENT(pumice::SumSlotsArguments) arguments) {{\n"
      "  pumice::wait_for_previous();\n"
      "  pumice::sum_slots<pumice::ElementType::{}>(arguments);\n"
      "}}\n",
      sizeof(SumSlotsArguments), kSumSlotsKernel, name_of(output));
}

}   // namespace pumice::cuda
