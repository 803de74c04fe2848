#include <pumice/skeleton/tile_direct.h>
inline constexpr pumice::TileSpec kSpec{
    .instruction = pumice::Instruction::mma_sync, .operand = pumice::ElementType::bf16,
    .output = pumice::ElementType::bf16, .gather = pumice::Gather::map,
    .write = pumice::Write::store, .in_channels = 4, .first_channels = 4,
    .out_channels = 32, .groups = 1, .shortcut_channels = 0,
    .shortcut_first_channels = 0, .tile_rows = 64, .tile_columns = 32,
    .tile_depth = 32, .stages = 4, .row_warps = 4, .column_warps = 1,
    .blocks_per_sm = 2, .resident_offsets = 27, .affine = true, .residual = true,
    .activations = pumice::ActivationSet::sloped};
static_assert(pumice::fingerprint(kSpec) == 8601781607846067097u);
static_assert(pumice::shared_bytes(kSpec) == 65792 && pumice::threads(kSpec) == 128);
static_assert(sizeof(pumice::TileArguments) == 184);
PUMICE_KERNEL void __launch_bounds__(128, 2)
tile_mma(PUMICE_ARGUMENT(pumice::TileArguments) arguments) {
  pumice::wait_unless(arguments.reads_ahead);
  pumice::tile_direct<kSpec>(arguments);
}
