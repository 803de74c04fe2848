// The order in which a convolution takes the tiles of a map, the longest first, how many there are,
// and whether there was room for their entries: the work of one block, from nothing but the sums
// that the tiles say while they are cut (formats/tiles.h).
#pragma once

#include <pumice/block/digit_ranks.h>
#include <pumice/block/scan.h>
#include <pumice/formats/cut_arguments.h>
#include <pumice/grid/look_back.h>
#include <pumice/maps/batch_task.h>
#include <pumice/thread/report.h>

namespace pumice {

inline constexpr int kLengths = 256;   // that are told apart

/// Tiles with more entries have a smaller digit: longest first.
PUMICE_DEVICE uint32_t length_digit(const CutTask& task, int32_t entries) {
  const auto most = static_cast<uint32_t>(task.map.relation.window.volume);
  const auto length = static_cast<uint32_t>(entries);
  return kLengths - 1 - (most < kLengths ? length : length * (kLengths - 1) / most);
}

/// Where the entries of a tile are, which is waited for.
PUMICE_DEVICE TileRun run_of_tile(const CutTask& task, int32_t tile, int32_t tiles_of_split) {
  const uint64_t end = sum_through(task.tile_sums, 1, tile);
  const uint64_t begin = tile == 0 ? 0 : sum_through(task.tile_sums, 1, tile - 1);
  return {tile, static_cast<int32_t>(begin), static_cast<int32_t>(end), tile / tiles_of_split};
}

PUMICE_DEVICE uint32_t run_digit(const CutTask& task, const TileRun& run) {
  return length_digit(task, run.entry_end - run.entry_begin);
}

/// A stable counting sort of the tiles by how many entries they have; for a whole block.
PUMICE_DEVICE void order_tiles(const CutTask& task, int32_t tiles, int32_t tiles_of_split) {
  constexpr int kItems = 4;
  using Positions = uint32_t[kLengths];
  PUMICE_BLOCK_SHARED(Positions, position);
  static_assert(kTileThreads == kLengths, "a thread for each length");
  position[thread_index()] = 0;
  block_sync();
  for (int32_t tile = thread_index(); tile < tiles; tile += kTileThreads)
    atomic_add(&position[run_digit(task, run_of_tile(task, tile, tiles_of_split))], 1u);
  block_sync();
  uint32_t total = 0;
  position[thread_index()] = block_exclusive_sum<kTileThreads>(position[thread_index()], total);
  for (int32_t first = 0; first < tiles; first += kItems * kTileThreads) {
    DigitRanks<kTileThreads, kItems, kLengths> ranks;
    const auto mine = static_cast<int32_t>(warp_first_element<kItems>(first)) + lane_index();
    TileRun run[kItems] = {};
    uint32_t digit[kItems];
    PUMICE_UNROLL
    for (int item = 0; item < kItems; ++item) {
      const int32_t tile = mine + item * kWarpThreads;
      digit[item] = ranks.kNoDigit;
      if (tile >= tiles) continue;
      run[item] = run_of_tile(task, tile, tiles_of_split);
      digit[item] = run_digit(task, run[item]);
    }
    ranks.find(digit);
    PUMICE_UNROLL
    for (int item = 0; item < kItems; ++item) {
      if (digit[item] != ranks.kNoDigit)
        task.tile_order[position[digit[item]] + ranks.rank[item]] = run[item];
    }
    block_sync();
    position[thread_index()] += ranks.count;
  }
}

/// Every block of a launch asks for its run before it knows the count of tiles (tile_walk.h): past
/// the last one it gets a run without entries instead of what lay there before.
PUMICE_DEVICE void clear_runs(const CutTask& task, int64_t from) {
  for (int64_t tile = from + thread_index(); tile < task.tile_capacity; tile += kTileThreads)
    task.tile_order[tile] = {0, 0, 0, 0};
}

/// For a whole block, behind all tiles of the task. There is room for as many tiles as the capacity
/// of the outputs makes.
PUMICE_DEVICE void plan_tiles(const CutBatch& batch, const CutTask& task, int32_t tiles,
                              int32_t tiles_of_split) {
  PUMICE_BLOCK_SHARED(int64_t, entries);
  if (thread_index() == 0)
    entries = tiles == 0 ? 0 : static_cast<int64_t>(sum_through(task.tile_sums, 1, tiles - 1));
  block_sync();
  const bool poisoned = poisoned_sets(batch.set, task.map);
  const bool fits = entries <= task.entry_capacity;
  if (thread_index() == 0) {
    *task.tile_count = poisoned || !fits ? kPoison : tiles;
    *task.entry_count = poisoned ? kPoison : entries;
    if (!fits) report(batch.status, kOverCapacity, task.entry_site, entries, task.entry_capacity);
  }
  const bool is_whole = !poisoned && fits;
  clear_runs(task, is_whole ? tiles : 0);
  if (is_whole) order_tiles(task, tiles, tiles_of_split);
}

}   // namespace pumice
