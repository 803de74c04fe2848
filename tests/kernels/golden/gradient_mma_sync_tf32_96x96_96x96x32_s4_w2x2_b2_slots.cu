#include <pumice/skeleton/gradient_warps.h>
inline constexpr pumice::GradientSpec kSpec{
    .instruction = pumice::Instruction::mma_sync, .operand = pumice::ElementType::tf32,
    .write = pumice::Write::slots, .in_channels = 96, .out_channels = 96, .groups = 1,
    .tile_in = 96, .tile_out = 96, .tile_pairs = 32, .stages = 4, .in_warps = 2,
    .out_warps = 2, .blocks_per_sm = 2};
static_assert(pumice::fingerprint(kSpec) == 5346760619623273368u);
static_assert(pumice::shared_bytes(kSpec, 27) == 106832 && pumice::threads(kSpec) == 128);
static_assert(sizeof(pumice::GradientArguments) == 80);
PUMICE_KERNEL void __launch_bounds__(128, 2)
weight_gradient(PUMICE_ARGUMENT(pumice::GradientArguments) arguments) {
  pumice::wait_for_previous();
  pumice::gradient_mma_sync<kSpec>(arguments);
}
