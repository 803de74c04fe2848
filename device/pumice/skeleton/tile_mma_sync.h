// TileMMA through the tensor cores' register instructions (sm_80 and later), on the pipeline of
// copy_ahead.h:
//
//     stage                       a warp's fragments               its sums
//   ┌ gathered rows ┐  ldmatrix   ┌ 16 rows × 32 bytes ┐
//   ├───────────────┤ ──────────► ├────────────────────┤  mma.sync  16 × 8 pieces in fp32
//   └ weights ──────┘             └ 16 columns × 32 B ─┘
#pragma once

#include <pumice/skeleton/copy_ahead.h>
#include <pumice/warp/matrix.h>

namespace pumice {

/// The rows and columns of one warp.
template <TileSpec S> class MatrixWarpTile {
  using Layout = StageLayout<S>;

 public:
  static constexpr int32_t kRows = warp_rows(S);
  static constexpr int32_t kColumns = warp_columns(S);
  static constexpr int32_t kBlocks = blocks_together(S);

  PUMICE_DEVICE MatrixWarpTile(int32_t warp, int32_t lane)
      : row_(warp % S.row_warps * kRows), column_(warp / S.row_warps * kColumns), lane_(lane) {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kRows / 16; ++i) {
      PUMICE_UNROLL
      for (int32_t j = 0; j < kColumns / 8; ++j)
        fill(sums_[i][j], 0.0f);
    }
  }

  /// Adds the products of a landed stage.
  PUMICE_DEVICE void multiply_stage(const unsigned char* memory) {
    const uint32_t stage = shared_address(memory);
    PUMICE_UNROLL
    for (int32_t sub = 0; sub < Layout::kSubTiles; ++sub) {
      PUMICE_UNROLL
      for (int32_t chunk = 0; chunk < Layout::kSubChunks; chunk += 2)
        multiply_chunks(stage, sub, chunk);
    }
  }

  /// Whether any row of this warp takes part in the walk's entry.
  PUMICE_DEVICE bool takes_part(const TileWalk<S>& walk) const {
    return walk.has_blocks(row_ / kBlockRows, kBlocks);
  }

  PUMICE_DEVICE void store(TileEpilogue<S>& epilogue, int32_t warp) const {
    Staging<S> staging(warp);
    PUMICE_UNROLL
    for (int32_t i = 0; i < kRows / kGroupRows; ++i)
      staging.put(i, sums_[i], lane_);
    epilogue.store(staging, column_);
  }

 private:
  /// 32 bytes of channels: two chunks.
  PUMICE_DEVICE void multiply_chunks(uint32_t stage, int32_t sub, int32_t chunk) {
    uint32_t a[kRows / 16][4];
    PUMICE_UNROLL
    for (int32_t i = 0; i < kRows / 16; ++i) {
      const int32_t row = row_ + i * 16 + lane_ % 16;
      load_matrices(a[i],
                    stage + static_cast<uint32_t>(Layout::input(row, sub, chunk + lane_ / 16)));
      round_operand(a[i]);
    }
    PUMICE_UNROLL
    for (int32_t j = 0; j < kColumns / 8; j += 2) {
      uint32_t b[4];
      const int32_t column = column_ + j * 8 + lane_ % 8 + lane_ / 16 * 8;
      load_matrices(
          b, stage + static_cast<uint32_t>(Layout::weight(column, sub, chunk + lane_ / 8 % 2)));
      PUMICE_UNROLL
      for (int32_t i = 0; i < kRows / 16; ++i) {
        multiply<S.operand>(sums_[i][j], a[i], b[0], b[1]);
        multiply<S.operand>(sums_[i][j + 1], a[i], b[2], b[3]);
      }
    }
  }

  /// tf32: the weights were rounded when they were packed, the rows are rounded here.
  PUMICE_DEVICE static void round_operand(uint32_t (&a)[4]) {
    if constexpr (S.operand == ElementType::tf32) {
      PUMICE_UNROLL
      for (int32_t i = 0; i < 4; ++i)
        a[i] = round_to_tf32(a[i]);
    }
  }

  int32_t row_;
  int32_t column_;
  int32_t lane_;
  float sums_[kRows / 16][kColumns / 8][4];
};

template <TileSpec S> PUMICE_DEVICE void tile_mma_sync(const TileArguments& arguments) {
  static_assert(is_valid(S) && S.instruction == Instruction::mma_sync && S.resident_offsets == 0);
  copy_ahead<S, MatrixWarpTile>(arguments);
}

}   // namespace pumice
