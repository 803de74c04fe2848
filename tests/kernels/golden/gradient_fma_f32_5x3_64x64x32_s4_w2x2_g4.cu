#include <pumice/skeleton/gradient_warps.h>
inline constexpr pumice::GradientSpec kSpec{
    .instruction = pumice::Instruction::fma, .operand = pumice::ElementType::f32,
    .write = pumice::Write::add, .in_channels = 5, .out_channels = 3, .groups = 4,
    .tile_in = 64, .tile_out = 64, .tile_pairs = 32, .stages = 4, .in_warps = 2,
    .out_warps = 2, .blocks_per_sm = 1};
static_assert(pumice::fingerprint(kSpec) == 8115310085076866151u);
static_assert(pumice::shared_bytes(kSpec, 27) == 74064 && pumice::threads(kSpec) == 128);
static_assert(sizeof(pumice::GradientArguments) == 80);
PUMICE_KERNEL void __launch_bounds__(128, 1)
weight_gradient(PUMICE_ARGUMENT(pumice::GradientArguments) arguments) {
  pumice::wait_for_previous();
  pumice::gradient_fma<kSpec>(arguments);
}
