#define PUMICE_WGMMA_COLUMNS 128
#include <pumice/skeleton/tile_wgmma.h>
inline constexpr pumice::TileSpec kSpec{
    .instruction = pumice::Instruction::wgmma, .operand = pumice::ElementType::f16,
    .output = pumice::ElementType::f16, .gather = pumice::Gather::map,
    .write = pumice::Write::store, .in_channels = 128, .first_channels = 128,
    .out_channels = 128, .groups = 1, .shortcut_channels = 0,
    .shortcut_first_channels = 0, .tile_rows = 128, .tile_columns = 128,
    .tile_depth = 64, .stages = 4, .row_warps = 8, .column_warps = 1,
    .blocks_per_sm = 1, .resident_offsets = 0, .affine = true, .residual = true,
    .activations = pumice::ActivationSet::sloped};
static_assert(pumice::fingerprint(kSpec) == 13108677558994237626u);
static_assert(pumice::shared_bytes(kSpec) == 131136 && pumice::threads(kSpec) == 384);
static_assert(sizeof(pumice::TileArguments) == 184);
PUMICE_KERNEL void __launch_bounds__(384, 1)
tile_mma(PUMICE_ARGUMENT(pumice::TileArguments) arguments) {
  pumice::wait_unless(arguments.reads_ahead);
  pumice::tile_wgmma<kSpec>(arguments);
}
