#include <pumice/skeleton/tile_mma_sync.h>
inline constexpr pumice::TileSpec kSpec{
    .instruction = pumice::Instruction::mma_sync, .operand = pumice::ElementType::tf32,
    .output = pumice::ElementType::f32, .gather = pumice::Gather::map,
    .write = pumice::Write::store, .in_channels = 96, .first_channels = 96,
    .out_channels = 96, .groups = 1, .shortcut_channels = 0,
    .shortcut_first_channels = 0, .tile_rows = 128, .tile_columns = 96,
    .tile_depth = 16, .stages = 4, .row_warps = 4, .column_warps = 1,
    .blocks_per_sm = 1, .resident_offsets = 0, .affine = true, .residual = true,
    .activations = pumice::ActivationSet::sloped};
static_assert(pumice::fingerprint(kSpec) == 8437900861252896262u);
static_assert(pumice::shared_bytes(kSpec) == 74240 && pumice::threads(kSpec) == 128);
static_assert(sizeof(pumice::TileArguments) == 184);
PUMICE_KERNEL void __launch_bounds__(128, 1)
tile_mma(PUMICE_ARGUMENT(pumice::TileArguments) arguments) {
  pumice::wait_unless(arguments.reads_ahead);
  pumice::tile_mma_sync<kSpec>(arguments);
}
