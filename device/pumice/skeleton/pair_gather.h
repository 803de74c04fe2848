// Copies the rows of both ends of a chunk of pairs into a stage: input rows and rows of the
// output's gradient, one row of channels for each pair.
//
//   ┌ x: sub-tile of tile_pairs rows │ … ┬ dy: sub-tile of tile_pairs rows │ … ┐
//
// As rows across K, swizzled, these are what transposing loads and wgmma's transposed operands
// read. 32-bit types lie in padded rows instead.
#pragma once

#include <pumice/shared/swizzle.h>
#include <pumice/skeleton/chunk_walk.h>
#include <pumice/skeleton/row_chunk.h>

namespace pumice {

/// One of the two operands in a stage.
template <GradientSpec S, bool kGrad> struct GradientOperand {
  static constexpr int32_t kChannels = kGrad ? S.out_channels : S.in_channels;
  static constexpr int32_t kTile = kGrad ? S.tile_out : S.tile_in;
  static constexpr int32_t kSwizzle = gradient_swizzle(S, kTile);
  static constexpr int32_t kElementBytes = element_bytes(S.operand);
  static constexpr int32_t kStart = kGrad ? operand_bytes(S, S.tile_in) : 0;
  static constexpr int32_t kSubBytes = S.tile_pairs * kSwizzle;
  static constexpr int32_t kPitch = kSwizzle > 0 ? kSwizzle : padded_pitch(kTile);   // of a row
  /// Chunks of a row that lanes side by side copy, and how often to get through the row.
  static constexpr int32_t kSubChunks = kSwizzle > 0 ? kSwizzle / kChunkBytes : 4;
  static constexpr int32_t kRowChunks =
      divide_up(staged_channels(S, kTile) * kElementBytes, kChunkBytes);
  static constexpr int32_t kSubTiles = divide_up(kRowChunks, kSubChunks);
  static constexpr ChannelSpan kSpan = {.type = S.operand,
                                        .channels = kChannels,
                                        .first = kChannels,
                                        .groups = S.groups,
                                        .copy_bytes = gradient_copy_bytes(S, kChannels),
                                        .padded = true};

  /// Bytes from the start of a stage to a chunk of a pair's row.
  PUMICE_SHARED static constexpr int32_t at(int32_t pair, int32_t sub, int32_t chunk) {
    return kStart +
           (kSwizzle > 0
                ? sub * kSubBytes + swizzled_offset(kSwizzle > 0 ? kSwizzle : 128, pair, chunk)
                : pair * padded_pitch(kTile) + (sub * kSubChunks + chunk) * kChunkBytes);
  }
};

template <GradientSpec S, int32_t kWarps> class PairGather {
  static constexpr int32_t kPairs = S.tile_pairs / kWarps;   // of this warp
  static constexpr int32_t kIndices = kPairs > kWarpLanes ? kPairs / kWarpLanes : 1;
  static constexpr int32_t kShuffled = kPairs < kWarpLanes ? kPairs : kWarpLanes;

 public:
  PUMICE_DEVICE PairGather(const GradientArguments& arguments, const ChunkWalk& walk, int32_t warp,
                           int32_t in_tile, int32_t out_tile, int32_t group)
      : arguments_(arguments),
        first_pair_(warp * kPairs),
        in_first_(in_tile * S.tile_in),
        out_first_(out_tile * S.tile_out),
        group_(group) {
    if (walk.done()) return;
    fetch(walk);
  }

  /// Takes the rows asked for last and asks for those of `next`, the walk one chunk further.
  PUMICE_DEVICE void enter(const ChunkWalk& next) {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kIndices; ++i) {
      in_[i] = next_in_[i];
      out_[i] = next_out_[i];
    }
    if (!next.done()) fetch(next);
  }

  /// Starts the copies of the rows taken to shared address `stage`.
  PUMICE_DEVICE void copy(uint32_t stage) const {
    copy_operand<GradientOperand<S, false>>(arguments_.input, in_, in_first_, stage);
    copy_operand<GradientOperand<S, true>>(arguments_.grad, out_, out_first_, stage);
  }

 private:
  PUMICE_DEVICE void fetch(const ChunkWalk& walk) {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kIndices; ++i) {
      const int64_t pair =
          walk.first_pair(S.tile_pairs) + first_pair_ + i * kWarpLanes + lane_index() % kPairs;
      const bool there = pair < walk.end_of_pairs();
      next_in_[i] = there ? arguments_.pairs.in[pair] : -1;
      next_out_[i] = there ? arguments_.pairs.out[pair] : -1;
    }
  }

  template <class Operand>
  PUMICE_DEVICE void copy_operand(const void* data, const int32_t (&rows)[kIndices],
                                  int32_t first_channel, uint32_t stage) const {
    constexpr int32_t kRowsAPass = kWarpLanes / Operand::kSubChunks;
    const int32_t chunk = lane_index() % Operand::kSubChunks;
    const int32_t lane_pair = lane_index() / Operand::kSubChunks;
    // Where every warp's rows lie like those of the first one, their addresses are constants apart.
    const int32_t first = kPairs % kSwizzlePeriod == 0 ? 0 : first_pair_;
    const uint32_t memory = stage + static_cast<uint32_t>((first_pair_ - first) * Operand::kPitch);
    PUMICE_UNROLL
    for (int32_t sub = 0; sub < Operand::kSubTiles; ++sub) {
      const int32_t in_row = sub * Operand::kSubChunks + chunk;
      const bool past_row =
          Operand::kRowChunks % Operand::kSubChunks != 0 && in_row >= Operand::kRowChunks;
      const RowChunk<Operand::kSpan> source(
          data, data, first_channel + in_row * (kChunkBytes / Operand::kElementBytes), group_);
      PUMICE_UNROLL
      for (int32_t pair = 0; pair < kPairs; pair += kRowsAPass) {
        const int32_t row = warp_shuffle(rows[pair / kWarpLanes], (pair + lane_pair) % kShuffled);
        if (past_row || (kPairs < kRowsAPass && lane_pair >= kPairs)) continue;
        const int32_t in_period = pair % kSwizzlePeriod;
        source.copy(memory + Operand::at(first + in_period + lane_pair, sub, chunk) +
                        (pair - in_period) * Operand::kPitch,
                    row);
      }
    }
  }

  const GradientArguments& arguments_;
  int32_t first_pair_;
  int32_t in_first_;
  int32_t out_first_;
  int32_t group_;
  int32_t in_[kIndices] = {};
  int32_t out_[kIndices] = {};
  int32_t next_in_[kIndices] = {};
  int32_t next_out_[kIndices] = {};
};

}   // namespace pumice
