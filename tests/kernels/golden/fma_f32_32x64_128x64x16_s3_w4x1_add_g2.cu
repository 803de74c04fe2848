#include <pumice/skeleton/tile_fma.h>
inline constexpr pumice::TileSpec kSpec{
    .instruction = pumice::Instruction::fma, .operand = pumice::ElementType::f32,
    .output = pumice::ElementType::f32, .gather = pumice::Gather::map,
    .write = pumice::Write::add, .in_channels = 32, .first_channels = 32,
    .out_channels = 64, .groups = 2, .shortcut_channels = 0,
    .shortcut_first_channels = 0, .tile_rows = 128, .tile_columns = 64,
    .tile_depth = 16, .stages = 3, .row_warps = 4, .column_warps = 1,
    .blocks_per_sm = 1, .resident_offsets = 0, .affine = true, .residual = true,
    .activations = pumice::ActivationSet::sloped};
static_assert(pumice::fingerprint(kSpec) == 5723206284361450193u);
static_assert(pumice::shared_bytes(kSpec) == 43008 && pumice::threads(kSpec) == 128);
static_assert(sizeof(pumice::TileArguments) == 184);
PUMICE_KERNEL void __launch_bounds__(128, 1)
tile_mma(PUMICE_ARGUMENT(pumice::TileArguments) arguments) {
  pumice::wait_unless(arguments.reads_ahead);
  pumice::tile_fma<kSpec>(arguments);
}
