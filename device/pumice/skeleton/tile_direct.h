// TileMMA for few channels (sm_80 and later): all weights stay in shared memory, and every warp
// runs alone, its rows going from global memory straight into the registers that multiply them.
//
//     rows of a warp                     lane l of a quad owns a quarter of the channels:
//   ┌ 16 rows × 16 or 32 channels ┐      one 8- or 16-byte load a row. The instruction counts
//   │  quad: c0…3 c4…7 c8…11 c12…15│     channels in another order, which does not matter as long
//   └─────────────────────────────┘      as the weights are read in the same one.
//
// A block goes on from tile to tile, so that weights are loaded once; there is no barrier after
// that. Beats the pipeline of copy_ahead.h at 16 channels (21 against 26 µs, 105k rows × 6 pairs),
// where a stage is too little work for its barrier.
#pragma once

#include <pumice/shared/swizzle.h>
#include <pumice/shared/tile_limits.h>
#include <pumice/skeleton/epilogue.h>
#include <pumice/thread/copy_async.h>
#include <pumice/thread/shared_address.h>
#include <pumice/warp/matrix.h>

namespace pumice {

template <TileSpec S> class DirectTile {
  static constexpr int32_t kGroups = warp_rows(S) / kGroupRows;
  static constexpr int32_t kLaneChannels = S.tile_depth / 4;
  static constexpr int32_t kWords = kLaneChannels / 2;
  static constexpr int32_t kSwizzle = swizzle_bytes(S);
  static constexpr int32_t kCopyBytes =
      input_copy_bytes(S) < kLaneChannels * 2 ? input_copy_bytes(S) : kLaneChannels * 2;

  /// The rows of one entry: for each group rows l / 4 and l / 4 + 8, this lane's channels.
  struct Rows {
    uint32_t word[kGroups][2][kWords];
    int32_t offset = 0;
    bool any = false;   // of the warp's rows is there
  };

 public:
  PUMICE_DEVICE DirectTile(const TileArguments& arguments, const TileStart& start, int32_t warp)
      : arguments_(arguments),
        run_(start.run),
        entry_(start.run.entry_begin),
        first_row_(warp * warp_rows(S)),
        epilogue_(arguments, start, 0, 0, first_row_, kGroupRows),
        weight_(launch_shared<unsigned char>() + weight_start()) {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kGroups; ++i) {
      PUMICE_UNROLL
      for (int32_t j = 0; j < S.tile_columns / 8; ++j)
        fill(sums_[i][j], 0.0f);
    }
  }

  /// Sums over all entries, S.stages of them in flight.
  PUMICE_DEVICE void multiply_entries() {
    const int32_t entries = run_.entry_end - run_.entry_begin;
    Rows rows[S.stages];
    ask_for_rows();
    PUMICE_UNROLL
    for (int32_t d = 0; d < S.stages - 1; ++d)
      load(rows[d]);
    PUMICE_ROLLED
    for (int32_t first = 0; first < entries; first += S.stages) {
      PUMICE_UNROLL
      for (int32_t d = 0; d < S.stages; ++d) {
        if (first + d >= entries) break;
        load(rows[(d + S.stages - 1) % S.stages]);
        if (rows[d].any) multiply_rows(rows[d]);
      }
    }
  }

  PUMICE_DEVICE void store(int32_t warp) {
    Staging<S> staging(warp);
    PUMICE_UNROLL
    for (int32_t i = 0; i < kGroups; ++i)
      staging.put(i, sums_[i], lane_index());
    epilogue_.store(staging, 0);
    warp_sync();   // the next tile stages here again
  }

 private:
  PUMICE_DEVICE static int32_t weight_start() { return staging_bytes(S); }

  /// Row number and offset of the next entry, needed one load later.
  PUMICE_DEVICE void ask_for_rows() {
    const bool there = entry_ < run_.entry_end;
    const int32_t in_tile = first_row_ + lane_index() % warp_rows(S);
    row_ = there ? arguments_.map.in_row[int64_t{entry_} * S.tile_rows + in_tile] : -1;
    offset_ = there ? arguments_.map.entry[entry_].offset : 0;
    ++entry_;
  }

  PUMICE_DEVICE void load(Rows& rows) {
    rows.offset = offset_;
    rows.any = warp_any(row_ >= 0);
    PUMICE_UNROLL
    for (int32_t i = 0; i < kGroups; ++i) {
      PUMICE_UNROLL
      for (int32_t half = 0; half < 2; ++half) {
        const int32_t row = warp_shuffle(row_, i * kGroupRows + half * 8 + lane_index() / 4);
        load_channels(rows.word[i][half], row);
      }
    }
    ask_for_rows();
  }

  /// This lane's channels of a row; zeros past the last channel and for row −1.
  PUMICE_DEVICE void load_channels(uint32_t (&word)[kWords], int32_t row) const {
    constexpr int32_t kStep = kCopyBytes / 2;   // channels of one access
    const int32_t channel = lane_index() % 4 * kLaneChannels;
    const auto* from =
        static_cast<const uint16_t*>(arguments_.input) + int64_t{row} * S.in_channels + channel;
    PUMICE_UNROLL
    for (int32_t i = 0; i < kWords; ++i)
      word[i] = 0;
    PUMICE_UNROLL
    for (int32_t c = 0; c < kLaneChannels; c += kStep) {
      const bool there =
          row >= 0 && (S.in_channels % S.tile_depth == 0 || channel + c < S.in_channels);
      if (!there) continue;
      if constexpr (kCopyBytes == 2) {
        word[c / 2] |= uint32_t{from[c]} << (c % 2 * 16);
      } else {
        const auto words = *reinterpret_cast<const Words<kCopyBytes / 4>*>(from + c);
        PUMICE_UNROLL
        for (int32_t i = 0; i < kCopyBytes / 4; ++i)
          word[c / 2 + i] = words.word[i];
      }
    }
  }

  PUMICE_DEVICE void multiply_rows(const Rows& rows) {
    const int32_t byte = lane_index() % 4 * kLaneChannels * 2;   // in a row of weights
    const unsigned char* block = weight_ + rows.offset * weight_stage_bytes(S);
    PUMICE_UNROLL
    for (int32_t j = 0; j < S.tile_columns / 8; ++j) {
      const int32_t column = j * 8 + lane_index() / 4;
      const auto b = *reinterpret_cast<const Words<kWords>*>(
          block + swizzled_offset(kSwizzle, column, byte / kChunkBytes) + byte % kChunkBytes);
      PUMICE_UNROLL
      for (int32_t s = 0; s < kWords; s += 2) {
        PUMICE_UNROLL
        for (int32_t i = 0; i < kGroups; ++i) {
          const uint32_t a[4] = {rows.word[i][0][s], rows.word[i][1][s], rows.word[i][0][s + 1],
                                 rows.word[i][1][s + 1]};
          multiply<S.operand>(sums_[i][j], a, b.word[s], b.word[s + 1]);
        }
      }
    }
  }

  const TileArguments& arguments_;
  const TileRun& run_;
  int32_t entry_;   // whose rows are asked for next
  int32_t first_row_;
  TileEpilogue<S> epilogue_;
  const unsigned char* weight_;
  int32_t row_ = -1;
  int32_t offset_ = 0;
  float sums_[kGroups][S.tile_columns / 8][4];
};

template <TileSpec S> PUMICE_DEVICE void tile_direct(const TileArguments& arguments) {
  static_assert(is_valid(S) && S.resident_offsets > 0);
  TileStart start = start_tile<S>(arguments);
  if (is_done<S>(arguments, start)) return;
  const auto* const weight = static_cast<const char*>(arguments.weight);
  const uint32_t to = shared_address(launch_shared<unsigned char>()) + staging_bytes(S);
  PUMICE_ROLLED
  for (int32_t i = thread_index() * kChunkBytes; i < resident_bytes(S);
       i += threads(S) * kChunkBytes)
    copy_async<kChunkBytes>(to + static_cast<uint32_t>(i), weight + i);
  copy_commit();
  copy_wait<0>();
  wait_for_previous();
  block_sync();

  const int64_t tiles = count_of(arguments.map.tiles);
  const int32_t warp = warp_shuffle(warp_index(), 0);
  PUMICE_ROLLED
  for (int64_t i = block_index() + grid_size();; i += grid_size()) {
    DirectTile<S> tile(arguments, start, warp);
    tile.multiply_entries();
    if (i >= tiles) launch_next();
    tile.store(warp);
    if (i >= tiles) return;
    start.run = arguments.map.tile_order[i];
  }
}

}   // namespace pumice
