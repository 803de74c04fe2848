#define PUMICE_WGMMA_COLUMNS 128
#include <pumice/skeleton/gradient_wgmma.h>
inline constexpr pumice::GradientSpec kSpec{
    .instruction = pumice::Instruction::wgmma, .operand = pumice::ElementType::bf16,
    .write = pumice::Write::add, .in_channels = 128, .out_channels = 128, .groups = 1,
    .tile_in = 64, .tile_out = 128, .tile_pairs = 64, .stages = 4, .in_warps = 4,
    .out_warps = 1, .blocks_per_sm = 1};
static_assert(pumice::fingerprint(kSpec) == 9631302735725166558u);
static_assert(pumice::shared_bytes(kSpec, 27) == 98704 && pumice::threads(kSpec) == 256);
static_assert(sizeof(pumice::GradientArguments) == 80);
PUMICE_KERNEL void __launch_bounds__(256, 1)
weight_gradient(PUMICE_ARGUMENT(pumice::GradientArguments) arguments) {
  pumice::wait_for_previous();
  pumice::gradient_wgmma<kSpec>(arguments);
}
