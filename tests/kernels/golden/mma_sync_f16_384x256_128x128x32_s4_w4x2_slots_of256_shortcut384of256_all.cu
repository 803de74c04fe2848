#include <pumice/skeleton/tile_mma_sync.h>
inline constexpr pumice::TileSpec kSpec{
    .instruction = pumice::Instruction::mma_sync, .operand = pumice::ElementType::f16,
    .output = pumice::ElementType::f16, .gather = pumice::Gather::map,
    .write = pumice::Write::slots, .in_channels = 384, .first_channels = 256,
    .out_channels = 256, .groups = 1, .shortcut_channels = 384,
    .shortcut_first_channels = 256, .tile_rows = 128, .tile_columns = 128,
    .tile_depth = 32, .stages = 4, .row_warps = 4, .column_warps = 2,
    .blocks_per_sm = 1, .resident_offsets = 0, .affine = true, .residual = true,
    .activations = pumice::ActivationSet::all};
static_assert(pumice::fingerprint(kSpec) == 3398230742374927787u);
static_assert(pumice::shared_bytes(kSpec) == 74752 && pumice::threads(kSpec) == 256);
static_assert(sizeof(pumice::TileArguments) == 184);
PUMICE_KERNEL void __launch_bounds__(256, 1)
tile_mma(PUMICE_ARGUMENT(pumice::TileArguments) arguments) {
  pumice::wait_unless(arguments.reads_ahead);
  pumice::tile_mma_sync<kSpec>(arguments);
}
