// The way through a tile: for each entry its chunks of channels, then the chunks of the shortcut.
// One continuous list of stages, so that the pipeline never runs dry between kernel offsets.
//
//   entry     e0      e1      e2     shortcut
//   chunk   0 1 2   0 1 2   0 1 2     0 1
//   stage   0 1 2   3 0 1   2 3 0     1 2
#pragma once

#include <pumice/platform.h>
#include <pumice/shared/tile_arguments.h>
#include <pumice/shared/tile_spec.h>

namespace pumice {

template <TileSpec S> class TileWalk {
 public:
  static constexpr int32_t kChunks = depth_chunks(S);
  static constexpr int32_t kShortcutChunks = shortcut_chunks(S);
  /// The entry of an identity map and of the shortcut: offset 0, all blocks.
  static constexpr uint32_t kWhole = ((1u << (S.tile_rows / kBlockRows)) - 1) << 16;

  PUMICE_DEVICE TileWalk(const TileArguments& arguments, const TileRun& run)
      : entries_(reinterpret_cast<const uint32_t*>(arguments.map.entry)),
        entry_(run.entry_begin),
        end_(run.entry_end),
        shortcut_chunks_(S.write == Write::store || run.split == 0 ? kShortcutChunks : 0) {
    if constexpr (S.gather == Gather::map) {
      window_ = read(entry_ + lane_index());
      ahead_ = read(entry_ + kWarpLanes + lane_index());
      current_ = warp_shuffle(window_, 0);
    }
  }

  /// Stages of the whole tile. Splits of the offsets are added up: the first one has the shortcut.
  PUMICE_DEVICE int32_t stages() const { return (end_ - entry_) * kChunks + shortcut_chunks_; }

  PUMICE_DEVICE bool in_shortcut() const { return kShortcutChunks > 0 && entry_ >= end_; }
  PUMICE_DEVICE int32_t entry() const { return entry_; }
  PUMICE_DEVICE int32_t end() const { return end_; }
  PUMICE_DEVICE int32_t chunk() const { return chunk_; }
  PUMICE_DEVICE int32_t offset() const { return static_cast<int32_t>(current_ & 0xffff); }
  /// Whether any of `count` blocks from `block` on takes part.
  PUMICE_DEVICE bool has_blocks(int32_t block, int32_t count) const {
    return (current_ >> (16 + block) & ((1u << count) - 1)) != 0;
  }

  /// To the next stage, by a whole warp; true when it belongs to another entry.
  PUMICE_DEVICE bool advance() {
    if (++chunk_ != (in_shortcut() ? kShortcutChunks : kChunks)) return false;
    chunk_ = 0;
    ++entry_;
    if constexpr (S.gather == Gather::map) {
      if (++in_window_ == kWarpLanes) {
        in_window_ = 0;
        window_ = ahead_;
        ahead_ = read(entry_ + kWarpLanes + lane_index());
      }
      current_ = warp_shuffle(window_, in_window_);
    }
    return true;
  }

 private:
  PUMICE_DEVICE uint32_t read(int32_t entry) const {
    return entry < end_ ? load_ahead(entries_ + entry) : kWhole;
  }

  const uint32_t* entries_;   // each read at once: offset in the lower half, blocks in the upper
  int32_t entry_;
  int32_t end_;
  int32_t shortcut_chunks_;   // of this tile, folded into a constant where sums are stored
  int32_t chunk_ = 0;
  uint32_t current_ = kWhole;
  // Each lane holds one of 32 entries and one of the 32 after those: a read in every step would be
  // under way whenever a multiplying warp fences its shared memory, which waits for reads too.
  uint32_t window_ = kWhole;
  uint32_t ahead_ = kWhole;
  int32_t in_window_ = 0;
};

}   // namespace pumice
