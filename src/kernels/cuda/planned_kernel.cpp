// Descriptions of what the launchers launch.
#include "kernels/cuda/planned_kernel.hpp"

#include "kernels/cuda/gradient_launch.hpp"
#include "kernels/cuda/packed_tiles.hpp"
#include "kernels/cuda/pair_sums.hpp"
#include "kernels/cuda/tile_launch.hpp"

namespace pumice::cuda {

PlannedKernel planned(const TileSpec& spec) {
  const char* kind = "mma.sync tiles";
  if (spec.instruction == Instruction::wgmma) kind = "wgmma tiles";
  if (spec.instruction == Instruction::fma) kind = "fp32 tiles";
  if (spec.resident_offsets > 0) kind = "resident tiles";
  return {.source = &source_of(spec),
          .kind = kind,
          .in_channels = spec.in_channels,
          .out_channels = spec.out_channels,
          .shared_bytes = shared_bytes(spec)};
}

PlannedKernel planned(const GradientSpec& spec) {
  constexpr std::int32_t kUsualOffsets = 27;
  return {.source = &source_of(spec),
          .kind = spec.instruction == Instruction::wgmma ? "wgmma gradients"
                  : spec.instruction == Instruction::fma ? "fp32 gradients"
                                                         : "mma.sync gradients",
          .in_channels = spec.in_channels,
          .out_channels = spec.out_channels,
          .shared_bytes = shared_bytes(spec, kUsualOffsets)};
}

PlannedKernel planned_packing() {
  return {.source = &packing_source(), .kind = "packing"};
}

PlannedKernel planned_sums(ElementType type) {
  return {.source = &sum_slots_source_of(type), .kind = "sums of slots"};
}

PlannedKernel planned_finish(ElementType type) {
  return {.source = &finish_source_of(type), .kind = "sums of splits"};
}

PlannedKernel planned_depthwise(ElementType type) {
  return {.source = &depthwise_source_of(type), .kind = "depthwise"};
}

}   // namespace pumice::cuda
