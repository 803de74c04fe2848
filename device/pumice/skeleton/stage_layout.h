// How a stage of the pipeline lies in shared memory: gathered rows, then a block of weights, each
// as sub-tiles whose rows have the width of a swizzle pattern.
//
//   ┌ input: sub-tile 0 (tile_rows × 128 B) │ sub-tile 1 │ … ┬ weights: sub-tile 0 (columns × 128
//   B) │ … ┐
#pragma once

#include <pumice/platform.h>
#include <pumice/shared/swizzle.h>
#include <pumice/shared/tile_spec.h>

namespace pumice {

template <TileSpec S> struct StageLayout {
  static constexpr int32_t kSwizzle = swizzle_bytes(S);
  static constexpr int32_t kSubTiles = sub_tiles(S);
  static constexpr int32_t kSubChunks = kSwizzle / kChunkBytes;   // chunks of a sub-tile's row
  static constexpr int32_t kInputSubBytes = S.tile_rows * kSwizzle;
  static constexpr int32_t kWeightSubBytes = S.tile_columns * kSwizzle;
  static constexpr int32_t kInputBytes = input_stage_bytes(S);
  static constexpr int32_t kBytes = stage_bytes(S);

  /// From a gathered row to the next, and rows after which the pattern of their chunks repeats.
  static constexpr int32_t kInputPitch =
      S.instruction == Instruction::fma ? padded_row_bytes(S) : kSwizzle;
  static constexpr int32_t kPeriod = S.instruction == Instruction::fma ? 1 : kSwizzlePeriod;

  /// Bytes from the start of a stage to chunk `chunk` of sub-tile `sub` of a gathered row.
  PUMICE_DEVICE static int32_t input(int32_t row, int32_t sub, int32_t chunk) {
    if constexpr (S.instruction == Instruction::fma) {
      return row * padded_row_bytes(S) + (sub * kSubChunks + chunk) * kChunkBytes;
    } else {
      return sub * kInputSubBytes + swizzled_offset(kSwizzle, row, chunk);
    }
  }

  /// The same for the weights of an output channel: `column` takes the place of the row.
  PUMICE_DEVICE static int32_t weight(int32_t column, int32_t sub, int32_t chunk) {
    return kInputBytes + sub * kWeightSubBytes + swizzled_offset(kSwizzle, column, chunk);
  }
};

}   // namespace pumice
