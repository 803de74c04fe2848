// What the kernels that cut maps are launched with: up to 16 cuts at once, of as many maps or of
// fewer.
#pragma once

#include <pumice/grid/sort_arguments.h>
#include <pumice/maps/match_arguments.h>
#include <pumice/shared/status.h>
#include <pumice/shared/tile_map.h>

namespace pumice {

inline constexpr int kMaxSplits = 4;
/// Kernels of more offsets are sorted by the order in which the offsets come, not by how rare they
/// are: finding that out takes volume² comparisons.
inline constexpr int kMostRankedOffsets = 1024;
inline constexpr int kMaskKeyBits = 63;   // seven passes of a sort

inline constexpr int kOrderThreads = 256;
inline constexpr int kOrderItems = 4;   // rows of a thread: digits are counted once a block
inline constexpr int kOrderRows = kOrderThreads * kOrderItems;
inline constexpr int kTileThreads = 256;
inline constexpr int kPairThreads = 512;   // and rows of a tile of pairs: fewer look back less far

/// One map on its way from what was found to tiles or pair lists. Null where nobody wants it.
struct CutTask {
  MatchTask map{};
  uint16_t* label = nullptr;   // [volume] place among the offsets, the most frequent first

  int32_t splits = 0;   // 0: no tiles are wanted
  int32_t tile_rows = 0;
  int32_t entry_site = 0;                // who is named where entries need more room
  int64_t* ordered_rows = nullptr;       // how many outputs there are to be ordered
  void* keys = nullptr;                  // u32 or u64 [splits, out capacity], to be sorted
  DigitTotals totals[kMaxSplits] = {};   // of those keys; null where the sort does without
  uint32_t* unsorted = nullptr;   // [splits, out capacity] to be ranks as they come; then no keys
  const uint32_t* sorted = nullptr;   // [splits, out capacity] ranks in the order that tiles have
  uint64_t* tile_sums = nullptr;      // [tile_capacity] zeroed: entries, grid/look_back.h
  uint32_t* tile_ticket = nullptr;    // zeroed
  TileRun* tile_order = nullptr;      // [tile_capacity]
  TileEntry* entry = nullptr;         // [entry_capacity]; null: tiles are counted and ordered
  TileEntry* mirrored = nullptr;      // [entry_capacity] the same entries, offsets from the last on
  int32_t* in_row = nullptr;          // [entry_capacity, tile_rows]
  int32_t* out_row = nullptr;         // [tile_capacity, tile_rows]
  int64_t* tile_count = nullptr;
  int64_t* entry_count = nullptr;
  int64_t tile_capacity = 0;
  int64_t entry_capacity = 0;

  int64_t* offset_begin = nullptr;   // [volume + 1]
  int32_t* pair_in = nullptr;        // [pair_capacity]
  int32_t* pair_out = nullptr;       // [pair_capacity]
  uint32_t* pair_sums = nullptr;     // [pair tiles, volume] zeroed: pairs, grid/look_back.h
  uint32_t* pair_ticket = nullptr;   // zeroed
  int64_t* pair_count = nullptr;
  int64_t pair_capacity = 0;
  int32_t pair_site = 0;
};

struct CutBatch {
  using Task = CutTask;
  CoordinateSetRef set[kMaxTaskSets];
  CutTask task[kMaxTasks];
  int32_t first_block[kMaxTasks] = {};   // blocks of a launch from here on are the task's
  int32_t tasks = 0;
  StatusRecord* status = nullptr;
};

}   // namespace pumice
