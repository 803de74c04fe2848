// Copies the rows of an entry into a stage. Each warp has its share of the tile's rows; a lane
// holds the row numbers of one position in 32, asked for one entry ahead, and hands them to the
// lanes that copy the row's chunks:
//
//   pass 0    lanes 0…7 → chunks 0…7 of row r, lanes 8…15 → row r + 1, …   (128-byte rows)
//   pass 1    the next four rows
//
// Missing rows become zeros without a read; blocks that nobody multiplies are left as they are.
#pragma once

#include <pumice/skeleton/row_chunk.h>
#include <pumice/skeleton/stage_layout.h>
#include <pumice/skeleton/tile_start.h>
#include <pumice/skeleton/tile_walk.h>

namespace pumice {

template <TileSpec S, int32_t kWarps> class RowGather {
  using Layout = StageLayout<S>;
  static constexpr int32_t kRows = S.tile_rows / kWarps;   // of this warp
  static constexpr int32_t kLanesARow = Layout::kSubChunks;
  static constexpr int32_t kRowsAPass = kWarpLanes / kLanesARow;
  static constexpr int32_t kIndices = kRows > kWarpLanes ? kRows / kWarpLanes : 1;
  static constexpr int32_t kTogether = blocks_together(S);
  /// Rows of this warp that are copied together or not at all.
  static constexpr int32_t kRowsTogether =
      kRows < kTogether * kBlockRows ? kRows : kTogether * kBlockRows;
  static_assert(kRows % Layout::kPeriod == 0);   // a warp's rows lie like those of the first one
  static constexpr int32_t kChunkChannels = kChunkBytes / element_bytes(S.operand);
  static constexpr ChannelSpan kInput = {.type = S.operand,
                                         .channels = S.in_channels,
                                         .first = S.first_channels,
                                         .groups = S.groups,
                                         .copy_bytes = input_copy_bytes(S),
                                         .padded = S.in_channels % S.tile_depth != 0};
  static constexpr ChannelSpan kShortcut = {.type = S.operand,
                                            .channels = S.shortcut_channels,
                                            .first = S.shortcut_first_channels,
                                            .groups = 1,
                                            .copy_bytes = input_copy_bytes(S),
                                            .padded = S.shortcut_channels % S.tile_depth != 0};

 public:
  PUMICE_DEVICE RowGather(const TileArguments& arguments, const TileWalk<S>& walk,
                          const TileStart& start, int32_t warp, int32_t group)
      : arguments_(arguments),
        first_row_(warp * kRows),
        lane_(lane_index()),
        position_(int64_t{start.run.tile} * S.tile_rows + first_row_ + lane_ % kRows),
        out_rows_(start.out_rows),
        group_(group) {
    fetch(walk.entry(), walk.end());
    enter(walk);
  }

  /// Call when the walk has come to another entry.
  PUMICE_DEVICE void enter(const TileWalk<S>& walk) {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kIndices; ++i)
      row_[i] = next_[i];
    fetch(walk.entry() + 1, walk.end());
  }

  /// Starts the copies of the walk's stage to shared address `stage`.
  PUMICE_DEVICE void copy(const TileWalk<S>& walk, uint32_t stage) const {
    if constexpr (S.shortcut_channels > 0) {
      if (walk.in_shortcut()) {
        copy_span<kShortcut>(arguments_.shortcut, arguments_.shortcut_second, walk, stage);
        return;
      }
    }
    copy_span<kInput>(arguments_.input, arguments_.second, walk, stage);
  }

 private:
  /// Row numbers of entry `entry`: those of the outputs for the shortcut, which comes last.
  PUMICE_DEVICE void fetch(int32_t entry, int32_t end) {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kIndices; ++i) {
      const int64_t position = position_ + i * kWarpLanes;
      if constexpr (S.gather == Gather::identity) {
        next_[i] = position < out_rows_ ? static_cast<int32_t>(position) : -1;
      } else if (entry < end) {
        const int32_t in_tile = first_row_ + lane_ % kRows + i * kWarpLanes;
        next_[i] = load_ahead(arguments_.map.in_row + (int64_t{entry} * S.tile_rows + in_tile));
      } else if (S.shortcut_channels > 0 && entry == end) {
        next_[i] = load_ahead(arguments_.map.out_row + position);
      }
    }
  }

  template <ChannelSpan kSpan>
  PUMICE_DEVICE void copy_span(const void* first, const void* second, const TileWalk<S>& walk,
                               uint32_t stage) const {
    const int32_t chunk = lane_ % kLanesARow, lane_row = lane_ / kLanesARow;
    const uint32_t warp_rows = stage + static_cast<uint32_t>(first_row_ * Layout::kInputPitch);
    PUMICE_UNROLL
    for (int32_t begin = 0; begin < kRows; begin += kRowsTogether) {
      const int32_t block = (first_row_ + begin) / kBlockRows / kTogether * kTogether;
      if (!walk.has_blocks(block, kTogether)) continue;
      PUMICE_UNROLL
      for (int32_t sub = 0; sub < Layout::kSubTiles; ++sub) {
        const int32_t in_stage = (sub * Layout::kSubChunks + chunk) * kChunkChannels;
        const RowChunk<kSpan> source(first, second, walk.chunk() * S.tile_depth + in_stage, group_);
        PUMICE_UNROLL
        for (int32_t row = begin; row < begin + kRowsTogether; row += kRowsAPass) {
          const int32_t in_row = warp_shuffle(row_[row / kWarpLanes], row % kWarpLanes + lane_row);
          const int32_t in_period = row % Layout::kPeriod;
          source.copy(warp_rows + Layout::input(in_period + lane_row, sub, chunk) +
                          (row - in_period) * Layout::kInputPitch,
                      in_row);
        }
      }
    }
  }

  const TileArguments& arguments_;
  int32_t first_row_;
  int32_t lane_;
  int64_t position_;
  int64_t out_rows_;
  int32_t group_;
  int32_t row_[kIndices] = {};
  int32_t next_[kIndices] = {};
};

}   // namespace pumice
