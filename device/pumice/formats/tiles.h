// Cutting ordered outputs into the tiles that a convolution runs on (shared/tile_map.h).
//
//   mask_tiles    a block a tile: which of its 64-row blocks have which offset, how many offsets,
//                 and the output row of each position
//   plan_tiles    a block a map: where each tile's entries begin, the longest tiles first, the
//                 counts, and whether there is room
//   fill_tiles    a block a tile: for each offset the tile has, the input row of each position
//
//   positions     │ 0 … 63 │ 64 … 127 │        entries of the tile
//   mask bits     │ ..1.11 │ .11....  │   ─▶   (offset 1, block 1) (offset 2, blocks 0 1) …
#pragma once

#include <pumice/block/digit_ranks.h>
#include <pumice/block/scan.h>
#include <pumice/formats/cut_arguments.h>
#include <pumice/maps/input_row.h>
#include <pumice/thread/report.h>

namespace pumice {

inline constexpr int kMostTileRows = kBlockRows * kMaxTileBlocks;

/// A tile, and its rows among the ordered ones of its split. `rows` is 0 where there is no such
/// tile.
struct TileSlice {
  int32_t tile;
  int split;
  const uint32_t* ranks;   // of its positions
  int rows;
};

/// Rows and tiles are int32: 32-bit divisions, which take no call.
PUMICE_DEVICE int32_t tiles_of_split(const CutTask& task) {
  const auto rows = static_cast<uint32_t>(*task.ordered_rows);
  const auto tile_rows = static_cast<uint32_t>(task.tile_rows);
  return static_cast<int32_t>((rows + tile_rows - 1) / tile_rows);
}

PUMICE_DEVICE TileSlice tile_slice(const CutBatch& batch, const CutTask& task, int32_t tile) {
  const int32_t tiles = tiles_of_split(task);
  if (tile >= tiles * task.splits) return {tile, 0, nullptr, 0};
  const int split = tile / tiles;
  const int64_t capacity = batch.set[task.map.out_set].rows.capacity;
  const int64_t first = int64_t{tile - split * tiles} * task.tile_rows;
  const int64_t left = *task.ordered_rows - first;
  return {tile, split, task.sorted + split * capacity + first,
          static_cast<int>(left < task.tile_rows ? left : task.tile_rows)};
}

/// The offsets of a word that belong to a split, one bit each. For a whole warp.
PUMICE_DEVICE uint32_t split_mask(const CutTask& task, int split, int word) {
  const int k = word * kWarpThreads + lane_index();
  return warp_ballot(k < task.map.relation.window.volume && task.label[k] % task.splits == split);
}

/// What the rows of one 64-row block have, for a whole warp.
PUMICE_DEVICE uint32_t or_of_block(const CutTask& task, const TileSlice& tile, int block,
                                   int word) {
  uint32_t bits = 0;
  for (int row = block * kBlockRows + lane_index(); row < (block + 1) * kBlockRows;
       row += kWarpThreads) {
    if (row < tile.rows) bits |= task.map.mask[int64_t{tile.ranks[row]} * task.map.words + word];
  }
  return warp_or(bits);
}

PUMICE_DEVICE void write_out_rows(const CutBatch& batch, const CutTask& task,
                                  const TileSlice& tile) {
  const int32_t* const order = batch.set[task.map.out_set].order;
  for (int row = thread_index(); row < task.tile_rows; row += kTileThreads) {
    const int32_t rank = row < tile.rows ? static_cast<int32_t>(tile.ranks[row]) : -1;
    task.out_row[int64_t{tile.tile} * task.tile_rows + row] = row_of_rank(order, rank);
  }
}

PUMICE_KERNEL PUMICE_THREADS(kTileThreads) void mask_tiles(PUMICE_ARGUMENT(CutBatch) batch) {
  wait_for_previous();
  using Blocks = uint32_t[kMaxTileBlocks];
  PUMICE_BLOCK_SHARED(Blocks, of_block);
  const auto [task, number] = task_of_block(batch);
  const TileSlice tile = tile_slice(batch, task, number);
  if (tile.rows == 0 || tile.tile >= task.tile_capacity) return;
  const int blocks = task.tile_rows / kBlockRows;
  int entries = 0;
  for (int word = 0; word < task.map.words; ++word) {
    const uint32_t mine = split_mask(task, tile.split, word);
    for (int block = warp_index(); block < blocks; block += kTileThreads / kWarpThreads) {
      const uint32_t bits = or_of_block(task, tile, block, word) & mine;
      if (lane_index() != 0) continue;
      of_block[block] = bits;
      task.block_mask[(int64_t{tile.tile} * blocks + block) * task.map.words + word] = bits;
    }
    block_sync();
    uint32_t of_tile = 0;
    for (int block = 0; block < blocks; ++block)
      of_tile |= of_block[block];
    entries += popcount(of_tile);
    block_sync();
  }
  if (thread_index() == 0) task.tile_entries[tile.tile] = entries;
  write_out_rows(batch, task, tile);
}

inline constexpr int kLengths = 256;   // that are told apart

/// Tiles with more entries have a smaller digit: longest first.
PUMICE_DEVICE uint32_t length_digit(const CutTask& task, int32_t entries) {
  const auto most = static_cast<uint32_t>(task.map.relation.window.volume);
  const auto length = static_cast<uint32_t>(entries);
  return kLengths - 1 - (most < kLengths ? length : length * (kLengths - 1) / most);
}

/// Where the entries of each tile begin; returns how many there are in all.
PUMICE_DEVICE int64_t place_entries(const CutTask& task, int32_t tiles) {
  int64_t before = 0;
  for (int32_t first = 0; first < tiles; first += kPlanThreads) {
    const int32_t tile = first + thread_index();
    const int64_t mine = tile < tiles ? task.tile_entries[tile] : 0;
    int64_t total = 0;
    const int64_t begin = before + block_exclusive_sum<kPlanThreads>(mine, total);
    if (tile < tiles) task.entry_begin[tile] = static_cast<int32_t>(begin);
    before += total;
  }
  return before;
}

/// A stable counting sort of the tiles by how many entries they have.
PUMICE_DEVICE void order_tiles(const CutTask& task, int32_t tiles, int32_t tiles_of_split) {
  using Positions = uint32_t[kLengths];
  PUMICE_BLOCK_SHARED(Positions, position);
  if (thread_index() < kLengths) position[thread_index()] = 0;
  block_sync();
  for (int32_t tile = thread_index(); tile < tiles; tile += kPlanThreads)
    atomic_add(&position[length_digit(task, task.tile_entries[tile])], 1u);
  block_sync();
  uint32_t total = 0;
  const uint32_t begin = block_exclusive_sum<kPlanThreads>(
      thread_index() < kLengths ? position[thread_index()] : 0, total);
  if (thread_index() < kLengths) position[thread_index()] = begin;
  for (int32_t first = 0; first < tiles; first += kPlanThreads) {
    const int32_t tile = first + thread_index();
    const int32_t entries = tile < tiles ? task.tile_entries[tile] : 0;
    DigitRanks<kPlanThreads, 1, kLengths> ranks;
    const uint32_t digit[1] = {tile < tiles ? length_digit(task, entries) : ranks.kNoDigit};
    ranks.find(digit);
    if (tile < tiles) {
      const int32_t entry = task.entry_begin[tile];
      task.tile_order[position[digit[0]] + ranks.rank[0]] = {tile, entry, entry + entries,
                                                             tile / tiles_of_split};
    }
    block_sync();
    if (thread_index() < kLengths) position[thread_index()] += ranks.count;
  }
}

/// Every block of a launch asks for its run before it knows the count of tiles (tile_walk.h): past
/// the last one it gets a run without entries instead of what lay there before.
PUMICE_DEVICE void clear_runs(const CutTask& task, int64_t from) {
  for (int64_t tile = from + thread_index(); tile < task.tile_capacity; tile += kPlanThreads)
    task.tile_order[tile] = {0, 0, 0, 0};
}

/// One block a task.
PUMICE_KERNEL PUMICE_THREADS(kPlanThreads) void plan_tiles(PUMICE_ARGUMENT(CutBatch) batch) {
  wait_for_previous();
  const CutTask& task = batch.task[block_index()];
  if (task.splits == 0) return;
  const int32_t of_split = tiles_of_split(task);
  const int32_t tiles = of_split * task.splits;
  const bool poisoned = poisoned_sets(batch.set, task.map);
  const bool fits = tiles <= task.tile_capacity;
  const int64_t entries = poisoned || !fits ? 0 : place_entries(task, tiles);
  if (thread_index() == 0) {
    *task.tile_count = poisoned || (fits && entries > task.entry_capacity) ? kPoison : tiles;
    *task.entry_count = poisoned || !fits ? kPoison : entries;
    if (!fits) {
      report(batch.status, kOverCapacity, task.tile_site, tiles, task.tile_capacity);
    } else if (entries > task.entry_capacity) {
      report(batch.status, kOverCapacity, task.entry_site, entries, task.entry_capacity);
    }
  }
  const bool is_whole = !poisoned && fits && entries <= task.entry_capacity;
  clear_runs(task, is_whole ? tiles : 0);
  if (!is_whole) return;
  block_sync();   // entry_begin is read by other threads than wrote it
  order_tiles(task, tiles, of_split);
}

/// The rows of a tile, as all threads of its block need them.
struct TileRows {
  int32_t rank[kMostTileRows];    // -1 past the end
  uint32_t mask[kMostTileRows];   // one word of offsets
};

/// Which offsets of a word a tile has, and the blocks that have each.
struct WordOffsets {
  int count;
  uint8_t bit[kWarpThreads];
  uint16_t blocks[kWarpThreads];

  /// For a whole warp.
  PUMICE_DEVICE void find(const CutTask& task, int32_t tile, int word) {
    const int tile_blocks = task.tile_rows / kBlockRows;
    uint32_t in_blocks = 0;
    for (int block = 0; block < tile_blocks; ++block) {
      const uint32_t bits =
          task.block_mask[(int64_t{tile} * tile_blocks + block) * task.map.words + word];
      in_blocks |= (bits >> lane_index() & 1) << block;
    }
    const uint32_t lanes = warp_ballot(in_blocks != 0);
    const int place = popcount(lanes & lanes_below());
    if (in_blocks != 0) {
      bit[place] = static_cast<uint8_t>(lane_index());
      blocks[place] = static_cast<uint16_t>(in_blocks);
    }
    if (lane_index() == 0) count = popcount(lanes);
  }
};

struct alignas(16) FourRows {
  int32_t row[4];
};

/// The input rows of an entry, from where they were noted when they were matched, four a lane; for
/// one warp.
PUMICE_DEVICE void copy_found(const CutTask& task, const TileRows& rows, int bit, int32_t* to) {
  const int volume = task.map.relation.window.volume;
  for (int first = 4 * lane_index(); first < task.tile_rows; first += 4 * kWarpThreads) {
    FourRows in;
    PUMICE_UNROLL
    for (int i = 0; i < 4; ++i) {
      const bool has = (rows.mask[first + i] >> bit & 1) != 0;
      in.row[i] = has ? task.map.found[int64_t{rows.rank[first + i]} * volume + bit] : -1;
    }
    *reinterpret_cast<FourRows*>(to + first) = in;
  }
}

/// The same, looked up again.
PUMICE_DEVICE void look_up_entry(const CutBatch& batch, const CutTask& task, const TileRows& rows,
                                 int word, int bit, int32_t* to) {
  for (int row = lane_index(); row < task.tile_rows; row += kWarpThreads) {
    const bool has = (rows.mask[row] >> bit & 1) != 0;
    to[row] =
        has ? look_up_row(batch.set, task.map, word * kWarpThreads + bit, rows.rank[row]) : -1;
  }
}

PUMICE_KERNEL PUMICE_THREADS(kTileThreads, 5) void fill_tiles(PUMICE_ARGUMENT(CutBatch) batch) {
  wait_for_previous();
  PUMICE_BLOCK_SHARED(TileRows, rows);
  PUMICE_BLOCK_SHARED(WordOffsets, offsets);
  const auto [task, number] = task_of_block(batch);
  if (RowCountRef{task.tile_count, task.tile_capacity}.poisoned()) return;
  const TileSlice tile = tile_slice(batch, task, number);
  if (tile.rows == 0) return;
  for (int row = thread_index(); row < task.tile_rows; row += kTileThreads) {
    rows.rank[row] = row < tile.rows ? static_cast<int32_t>(tile.ranks[row]) : -1;
  }
  int64_t entry = task.entry_begin[tile.tile];
  for (int word = 0; word < task.map.words; ++word) {
    block_sync();   // the word before has been worked off
    if (warp_index() == 0) offsets.find(task, tile.tile, word);
    for (int row = thread_index(); row < task.tile_rows; row += kTileThreads) {
      rows.mask[row] =
          row < tile.rows ? task.map.mask[int64_t{tile.ranks[row]} * task.map.words + word] : 0;
    }
    block_sync();
    if (thread_index() < offsets.count) {
      const int k = word * kWarpThreads + offsets.bit[thread_index()];
      const uint16_t blocks = offsets.blocks[thread_index()];
      task.entry[entry + thread_index()] = {static_cast<uint16_t>(k), blocks};
      if (task.mirrored != nullptr) {
        const int mirrored = task.map.relation.window.volume - 1 - k;
        task.mirrored[entry + thread_index()] = {static_cast<uint16_t>(mirrored), blocks};
      }
    }
    for (int i = warp_index(); i < offsets.count; i += kTileThreads / kWarpThreads) {
      int32_t* const to = task.in_row + (entry + i) * task.tile_rows;
      if (task.map.found != nullptr) {
        copy_found(task, rows, offsets.bit[i], to);
      } else {
        look_up_entry(batch, task, rows, word, offsets.bit[i], to);
      }
    }
    entry += offsets.count;
  }
}

}   // namespace pumice
