// TileMMA in fp32 multiply-adds, on the pipeline of copy_ahead.h: fp32 means fp32.
//
//        warp tile: rows × columns            a lane: every 4th row, 4 of every 32 columns
//      ┌ lanes 0 … 7 ──────────────┐
//      │ lanes 8 … 15    (row 1)   │          per 4 channels a lane reads a 16-byte chunk of each
//      of │ lanes 16 … 23   (row 2)   │          its rows and 4 × 16 bytes of weights for each 32
//      │ lanes 24 … 31   (row 3)   │          columns: 12 loads for 256 multiply-adds at 8 × 8 sums
//      │ lanes 0 … 7     (row 4)   │
#pragma once

#include <pumice/skeleton/copy_ahead.h>

namespace pumice {

template <TileSpec S> class LaneTile {
  static constexpr int32_t kRowLanes = 4;
  static constexpr int32_t kColumnLanes = 8;
  static constexpr int32_t kChannels = 4;   // of a chunk
  static constexpr int32_t kRows = warp_rows(S) / kRowLanes;
  static constexpr int32_t kQuads = warp_columns(S) / kColumnLanes / 4;
  static constexpr int32_t kBlocks = warp_rows(S) > kBlockRows ? warp_rows(S) / kBlockRows : 1;

 public:
  PUMICE_DEVICE LaneTile(int32_t warp, int32_t lane)
      : warp_row_(warp % S.row_warps * warp_rows(S)),
        warp_column_(warp / S.row_warps * warp_columns(S)),
        lane_row_(lane / kColumnLanes),
        lane_column_(lane % kColumnLanes * 4) {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kRows; ++i) {
      PUMICE_UNROLL
      for (int32_t j = 0; j < kQuads; ++j)
        fill(sums_[i][j], 0.0f);
    }
  }

  PUMICE_DEVICE bool takes_part(const TileWalk<S>& walk) const {
    return walk.has_blocks(warp_row_ / kBlockRows, kBlocks);
  }

  PUMICE_DEVICE void multiply_stage(const unsigned char* stage) {
    const unsigned char* input = stage + (warp_row_ + lane_row_) * padded_row_bytes(S);
    const unsigned char* weight = stage + input_stage_bytes(S) + (warp_column_ + lane_column_) * 4;
    PUMICE_ROLLED
    for (int32_t c = 0; c < S.tile_depth; c += kChannels) {
      float x[kRows][kChannels];
      PUMICE_UNROLL
      for (int32_t i = 0; i < kRows; ++i)
        load_four(x[i], floats_at(input + i * kRowLanes * padded_row_bytes(S) + c * 4));
      PUMICE_UNROLL
      for (int32_t k = 0; k < kChannels; ++k) {
        PUMICE_UNROLL
        for (int32_t j = 0; j < kQuads; ++j) {
          float w[4];
          load_four(w, floats_at(weight + ((c + k) * S.tile_columns + j * 32) * 4));
          PUMICE_UNROLL
          for (int32_t i = 0; i < kRows; ++i) {
            PUMICE_UNROLL
            for (int32_t n = 0; n < 4; ++n)
              sums_[i][j][n] += x[i][k] * w[n];
          }
        }
      }
    }
  }

  PUMICE_DEVICE void store(TileEpilogue<S>& epilogue, int32_t warp) const {
    Staging<S> staging(warp);
    PUMICE_UNROLL
    for (int32_t i = 0; i < kRows; ++i) {
      PUMICE_UNROLL
      for (int32_t j = 0; j < kQuads; ++j)
        store_four(staging.sums(lane_row_ + i * kRowLanes, lane_column_ + j * 32), sums_[i][j]);
    }
    epilogue.store(staging, warp_column_);
  }

 private:
  PUMICE_DEVICE static const float* floats_at(const unsigned char* memory) {
    return reinterpret_cast<const float*>(memory);
  }

  int32_t warp_row_;
  int32_t warp_column_;
  int32_t lane_row_;
  int32_t lane_column_;
  float sums_[kRows][kQuads][4];
};

template <TileSpec S> PUMICE_DEVICE void tile_fma(const TileArguments& arguments) {
  static_assert(is_valid(S) && S.instruction == Instruction::fma);
  copy_ahead<S, LaneTile>(arguments);
}

}   // namespace pumice
