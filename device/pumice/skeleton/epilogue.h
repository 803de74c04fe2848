// The end of every convolution kernel, written once. Sums leave the registers through shared
// memory; then each warp, by itself, scales, shifts, activates, rounds and stores its rows as whole
// 16-byte chunks.
//
//    registers            staging (fp32)                  lanes                      memory
//   ┌ fragment ┐      ┌ c%8<4 ──┬ c%8≥4 ──┐     lane 0: row 0, columns 0…7    →   output row
//   │ 16 × 64  │  →   │ 16 rows │ 16 rows │  →  lane 1: row 0, columns 8…15       out_row[p]
//   └──────────┘      └─────────┴─────────┘     …                                  (16 B each)
//
// fp32 and not the output's type, so that a residual is added before the only rounding. All sums
// are staged before any is stored: the second half is then one loop, which keeps compiling short.
#pragma once

#include <pumice/shared/tile_limits.h>
#include <pumice/skeleton/apply_epilogue.h>
#include <pumice/skeleton/tile_start.h>

namespace pumice {

/// The staging memory of one warp. Its rows are groups of 16, kGroupStep rows of the tile apart.
template <TileSpec S> class Staging {
 public:
  static constexpr int32_t kRows = warp_rows(S);
  static constexpr int32_t kColumns = warp_columns(S);
  static constexpr int32_t kPitch = staging_pitch(S);
  static constexpr int32_t kPieceFloats = kGroupRows * kPitch;

  PUMICE_DEVICE explicit Staging(int32_t warp)
      : out_rows_(reinterpret_cast<int32_t*>(launch_shared<unsigned char>() +
                                             warp * warp_staging_bytes(S))),
        sums_(reinterpret_cast<float*>(out_rows_ + divide_up(kRows, 4) * 4)) {}

  /// The output row of the warp's row `row`.
  PUMICE_DEVICE int32_t& out_row(int32_t row) { return out_rows_[row]; }

  /// Four sums of a row, from a column that is a multiple of 4.
  PUMICE_DEVICE float* sums(int32_t row, int32_t column) {
    constexpr int32_t kPiece = piece_columns(S);
    const int32_t piece = row / kGroupRows * staged_pieces(S) + column / kPiece;
    return sums_ + piece * kPieceFloats + row % kGroupRows * kPitch + in_row(column % kPiece);
  }

  /// Accumulators of a group in the layout of warp/matrix.h.
  PUMICE_DEVICE void put(int32_t group, const float (&fragment)[kColumns / 8][4], int32_t lane) {
    float* const first = sums(group * kGroupRows, 0) + lane / 4 * kPitch + in_row(lane % 4 * 2);
    PUMICE_UNROLL
    for (int32_t j = 0; j < kColumns / 8; ++j) {
      constexpr int32_t kBlocks = piece_columns(S) / 8;   // of 8 columns, in a piece
      float* to = first + j / kBlocks * kPieceFloats + j % kBlocks * 4;
      store_pair(to, fragment[j][0], fragment[j][1]);
      store_pair(to + 8 * kPitch, fragment[j][2], fragment[j][3]);
    }
  }

 private:
  PUMICE_SHARED static constexpr int32_t in_row(int32_t column) {
    return column / 8 * 4 + column % 4 + (column % 8 < 4 ? 0 : staging_half(S));
  }

  int32_t* out_rows_;
  float* sums_;
};

/// From staged sums to memory, for one warp: groups of 16 rows that begin at `row` of the tile and
/// are `group_step` apart.
template <TileSpec S> class TileEpilogue {
  static constexpr bool kPartial = S.write != Write::store;
  static constexpr ElementType kType = written_type(S);
  static constexpr int32_t kChunk = kPartial ? 4 : kChunkBytes / element_bytes(kType);   // columns
  static constexpr int32_t kChunks = Staging<S>::kColumns / kChunk;   // of a staged row
  static constexpr int32_t kItems = Staging<S>::kRows * kChunks;
  static constexpr int32_t kChannels = S.groups * S.out_channels;   // pitch of an output row
  static constexpr int32_t kVectorAlign = widest_copy(int64_t{S.out_channels} * 4);
  static constexpr int32_t kRowAlign = output_copy_bytes(S);
  /// Chunks that a lane has under way, since residuals come from far: as many as registers allow.
  /// Warps that run alone (tile_direct.h) hide each other's waits.
  static constexpr int32_t kBatch = S.resident_offsets > 0            ? 1
                                    : multiplying_registers(S) >= 112 ? 4
                                    : multiplying_registers(S) >= 96  ? 2
                                                                      : 1;
  /// Whether a lane has the same channels in every chunk.
  static constexpr bool kSameChannels = kWarpLanes % kChunks == 0;
  using Channels = ChannelEpilogue<kVectorAlign, kChunk>;

 public:
  /// Before the products, so that the output rows are there when they are needed.
  PUMICE_DEVICE TileEpilogue(const TileArguments& arguments, const TileStart& start,
                             int32_t column_tile, int32_t group, int32_t row, int32_t group_step)
      : arguments_(arguments),
        split_(start.run.split),
        first_column_(column_tile * S.tile_columns),
        first_channel_(group * S.out_channels) {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kRowsALane; ++i) {
      const int32_t r = i * kWarpLanes + lane_index();
      out_row_[i] = r < Staging<S>::kRows
                        ? out_row(start, row + r / kGroupRows * group_step + r % kGroupRows)
                        : -1;
    }
  }

  /// Stores the warp's rows, whose sums are staged, from `column` of the tile on.
  PUMICE_DEVICE void store(Staging<S>& staging, int32_t column) {
    const int32_t lane = lane_index();
    PUMICE_UNROLL
    for (int32_t i = 0; i < kRowsALane; ++i) {
      const int32_t r = i * kWarpLanes + lane;
      if (r < Staging<S>::kRows) staging.out_row(r) = out_row_[i];
    }
    warp_sync();
    column += first_column_;
    Channels channels;
    if constexpr (kSameChannels && S.affine && !kPartial)
      load_channels(channels, column + lane % kChunks * kChunk);
    PUMICE_ROLLED
    for (int32_t first = lane; first < kItems; first += kBatch * kWarpLanes)
      store_batch(staging, static_cast<uint32_t>(first), column, channels);
  }

 private:
  static constexpr int32_t kRowsALane = divide_up(Staging<S>::kRows, kWarpLanes);

  PUMICE_DEVICE int32_t out_row(const TileStart& start, int32_t row) const {
    const int64_t position = int64_t{start.run.tile} * S.tile_rows + row;
    if constexpr (S.gather == Gather::identity) {
      return position < start.out_rows ? static_cast<int32_t>(position) : -1;
    } else {
      return load_ahead(arguments_.map.out_row + position);
    }
  }

  /// Chunk `item` of the warp's: rows one after the other.
  PUMICE_DEVICE static int32_t row_of(uint32_t item) {
    return static_cast<int32_t>(item / kChunks);
  }
  PUMICE_DEVICE static int32_t column_of(uint32_t item) {
    return static_cast<int32_t>(item % kChunks * kChunk);
  }

  /// Channels that a chunk has from `column` of the group on.
  PUMICE_DEVICE static int32_t count_from(int32_t column) {
    return S.out_channels % kChunk == 0 ? kChunk : S.out_channels - column;
  }

  PUMICE_DEVICE void load_channels(Channels& channels, int32_t column) const {
    if (column >= S.out_channels) return;
    channels.load(arguments_.epilogue, first_channel_ + column, count_from(column));
  }

  /// Up to kBatch chunks, every 32nd from `first` on; `column` counts in the group.
  PUMICE_DEVICE void store_batch(Staging<S>& staging, uint32_t first, int32_t column,
                                 Channels& channels) {
    int32_t to[kBatch];
    float residual[kBatch][kChunk];
    PUMICE_UNROLL
    for (int32_t b = 0; b < kBatch; ++b) {
      const uint32_t item = first + b * kWarpLanes;
      const int32_t chunk_column = column + column_of(item);
      const bool there = (kItems % (kBatch * kWarpLanes) == 0 || item < kItems) &&
                         (S.out_channels % S.tile_columns == 0 || chunk_column < S.out_channels);
      to[b] = there ? staging.out_row(row_of(item)) : -1;
      if constexpr (!kPartial) {
        fill(residual[b], 0.0f);
        if (S.residual && to[b] >= 0) {
          load_or_fill<kType, kRowAlign>(residual[b], arguments_.epilogue.residual,
                                         element(to[b], chunk_column), count_from(chunk_column),
                                         0.0f);
        }
      }
    }
    PUMICE_UNROLL
    for (int32_t b = 0; b < kBatch; ++b) {
      if (to[b] < 0) continue;
      const uint32_t item = first + b * kWarpLanes;
      const int32_t in_warp = column_of(item);
      float value[kChunk];
      PUMICE_UNROLL
      for (int32_t i = 0; i < kChunk; i += 4)
        load_four(&value[i], staging.sums(row_of(item), in_warp + i));
      if constexpr (kPartial) {
        store_partial(value, to[b], column + in_warp);
      } else {
        if constexpr (!kSameChannels && S.affine) load_channels(channels, column + in_warp);
        store_finished(value, residual[b], channels, to[b], column + in_warp);
      }
    }
  }

  PUMICE_DEVICE int64_t element(int64_t out_row, int32_t column) const {
    return out_row * kChannels + first_channel_ + column;
  }

  PUMICE_DEVICE void store_partial(const float (&value)[kChunk], int64_t out_row, int32_t column) {
    float* const partial = static_cast<float*>(arguments_.output);
    if constexpr (S.write == Write::add) {
      add_chunk<kVectorAlign>(partial + element(out_row, column), value, count_from(column));
    } else {
      const int64_t slot = split_ * arguments_.map.out_rows.capacity * kChannels;
      store_chunk<kType, kVectorAlign>(partial, slot + element(out_row, column), value,
                                       count_from(column));
    }
  }

  PUMICE_DEVICE void store_finished(float (&value)[kChunk], const float (&residual)[kChunk],
                                    const Channels& channels, int64_t out_row, int32_t column) {
    const EpilogueArguments& epilogue = arguments_.epilogue;
    const float below = negative_slope(epilogue.activation, epilogue.slope);
    if constexpr (S.affine) {
      apply_epilogue<S.activations>(value, channels, residual, epilogue.activation, below);
    } else {
      PUMICE_UNROLL
      for (int32_t i = 0; i < kChunk; ++i)
        value[i] = activate<S.activations>(value[i] + residual[i], epilogue.activation, below);
    }
    store_chunk<kType, kRowAlign>(arguments_.output, element(out_row, column), value,
                                  count_from(column));
  }

  const TileArguments& arguments_;
  int32_t split_;
  int32_t first_column_;
  int32_t first_channel_;
  int32_t out_row_[kRowsALane];   // of rows lane, lane + 32 …
};

}   // namespace pumice
