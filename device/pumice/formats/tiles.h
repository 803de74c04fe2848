// Cutting ordered outputs into the tiles that a convolution runs on (shared/tile_map.h), in one
// launch for all cuts of a batch, `cut_tiles`: a block a tile, and one more block a cut.
//
//   a tile          which of its 64-row blocks have which offset, and so how many entries it has;
//                   looking back says where those begin (grid/look_back.h), and meanwhile the
//                   first input rows that were noted come in; then the input row of each position
//                   for each offset, and the output rows
//   the last block  hears what all tiles said, and orders them (formats/tile_order.h)
//
// Where entries have no memory yet, tiles are only counted and ordered; once the host has read how
// many entries there are, `write_tiles` writes them, a block a tile, where the sums say.
//
//   positions     │ 0 … 63 │ 64 … 127 │        entries of the tile
//   mask bits     │ ..1.11 │ .11....  │   ─▶   (offset 1, block 1) (offset 2, blocks 0 1) …
#pragma once

#include <pumice/formats/cut_arguments.h>
#include <pumice/formats/tile_order.h>
#include <pumice/grid/look_back.h>
#include <pumice/maps/input_row.h>

namespace pumice {

inline constexpr int kMostTileRows = kBlockRows * kMaxTileBlocks;
inline constexpr int kTileWarps = kTileThreads / kWarpThreads;
/// Pieces of entries that a warp has under way: 47.5 us for MinkUNet42's tiles on an H200, as with
/// three, and 48.3 with one.
inline constexpr int kPiecesAtOnce = 2;

/// A tile, and its rows among the ordered ones of its split.
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

PUMICE_DEVICE TileSlice tile_slice(const CutBatch& batch, const CutTask& task, int32_t tile,
                                   int32_t tiles_of_split) {
  const int split = tile / tiles_of_split;
  const int64_t capacity = batch.set[task.map.out_set].rows.capacity;
  const int64_t first = int64_t{tile - split * tiles_of_split} * task.tile_rows;
  const int64_t left = *task.ordered_rows - first;
  return {tile, split, task.sorted + split * capacity + first,
          static_cast<int>(left < task.tile_rows ? left : task.tile_rows)};
}

/// The offsets of a word that belong to a split, one bit each. For a whole warp.
PUMICE_DEVICE uint32_t split_mask(const CutTask& task, int split, int word) {
  const int k = word * kWarpThreads + lane_index();
  return warp_ballot(k < task.map.relation.window.volume && task.label[k] % task.splits == split);
}

/// The rows of a tile and what they have of a word of offsets, as all threads of its block need
/// them.
struct TileWord {
  int32_t rank[kMostTileRows];           // -1 past the end
  uint32_t mask[kMostTileRows];          // what each row has of all offsets
  uint32_t block_mask[kMaxTileBlocks];   // what each 64 rows have of those of the split

  PUMICE_DEVICE void load_ranks(const CutTask& task, const TileSlice& tile) {
    for (int row = thread_index(); row < task.tile_rows; row += kTileThreads)
      rank[row] = row < tile.rows ? static_cast<int32_t>(tile.ranks[row]) : -1;
  }
  /// Every thread calls, having loaded ranks itself, and may read everything afterwards.
  PUMICE_DEVICE void load(const CutTask& task, const TileSlice& tile, int word) {
    for (int row = thread_index(); row < task.tile_rows; row += kTileThreads)
      mask[row] = row < tile.rows ? task.map.mask[int64_t{rank[row]} * task.map.words + word] : 0;
    block_sync();
    const uint32_t mine = split_mask(task, tile.split, word);
    for (int block = warp_index(); block * kBlockRows < task.tile_rows; block += kTileWarps) {
      const int row = block * kBlockRows + lane_index();
      const uint32_t bits = warp_or(mask[row] | mask[row + kWarpThreads]) & mine;
      if (lane_index() == 0) block_mask[block] = bits;
    }
    block_sync();
  }
  /// How many offsets the tile has of the word.
  PUMICE_DEVICE int offsets(int blocks) const {
    uint32_t of_tile = 0;
    for (int block = 0; block < blocks; ++block)
      of_tile |= block_mask[block];
    return popcount(of_tile);
  }
};
static_assert(kBlockRows == 2 * kWarpThreads, "a lane takes two rows of a block");

/// Which offsets of a word a tile has, and the blocks that have each.
struct WordOffsets {
  int count;
  uint8_t bit[kWarpThreads];
  uint16_t blocks[kWarpThreads];

  /// For a whole warp.
  PUMICE_DEVICE void find(const TileWord& rows, int tile_blocks) {
    uint32_t in_blocks = 0;
    for (int block = 0; block < tile_blocks; ++block)
      in_blocks |= (rows.block_mask[block] >> lane_index() & 1) << block;
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

/// The input rows of an entry at 128 positions, four a lane, from where they were noted when they
/// were matched: read now, written later, so that several are under way together. For one warp.
struct FoundPiece {
  int entry;   // of the word; none: as many as it has
  int first;   // of this lane's positions
  FourRows in;

  PUMICE_DEVICE void read(const CutTask& task, const TileWord& rows, const WordOffsets& offsets,
                          int piece) {
    const int pieces = (task.tile_rows + 4 * kWarpThreads - 1) / (4 * kWarpThreads);
    entry = piece / pieces;
    first = 4 * (piece % pieces * kWarpThreads + lane_index());
    if (entry >= offsets.count) entry = offsets.count;
    if (entry == offsets.count || first >= task.tile_rows) return;
    const int bit = offsets.bit[entry];
    const int volume = task.map.relation.window.volume;
    PUMICE_UNROLL
    for (int i = 0; i < 4; ++i) {
      const bool has = (rows.mask[first + i] >> bit & 1) != 0;
      in.row[i] = has ? task.map.found[int64_t{rows.rank[first + i]} * volume + bit] : -1;
    }
  }
  /// `entry_0` is the first entry of the word.
  PUMICE_DEVICE void write(const CutTask& task, const WordOffsets& offsets, int64_t entry_0) const {
    if (entry == offsets.count || first >= task.tile_rows) return;
    int32_t* const to = task.in_row + (entry_0 + entry) * task.tile_rows + first;
    *reinterpret_cast<FourRows*>(to) = in;
  }
};

/// Those that a warp reads before it writes the first of them.
struct FoundPieces {
  FoundPiece piece[kPiecesAtOnce];
  int number;   // of the first

  PUMICE_DEVICE void read(const CutTask& task, const TileWord& rows, const WordOffsets& offsets,
                          int from) {
    number = from;
    PUMICE_UNROLL
    for (int i = 0; i < kPiecesAtOnce; ++i)
      piece[i].read(task, rows, offsets, from + i * kTileWarps);
  }
  /// Writes what it read, and reads and writes what comes behind it.
  PUMICE_DEVICE void go_on(const CutTask& task, const TileWord& rows, const WordOffsets& offsets,
                           int64_t entry_0) {
    for (;;) {
      PUMICE_UNROLL
      for (int i = 0; i < kPiecesAtOnce; ++i)
        piece[i].write(task, offsets, entry_0);
      if (piece[kPiecesAtOnce - 1].entry == offsets.count) return;
      read(task, rows, offsets, number + kPiecesAtOnce * kTileWarps);
    }
  }
};

/// The input rows of an entry, looked up again; for one warp.
PUMICE_DEVICE void look_up_entry(const CutBatch& batch, const CutTask& task, const TileWord& rows,
                                 int word, int bit, int32_t* to) {
  for (int row = lane_index(); row < task.tile_rows; row += kWarpThreads) {
    const bool has = (rows.mask[row] >> bit & 1) != 0;
    to[row] =
        has ? look_up_row(batch.set, task.map, word * kWarpThreads + bit, rows.rank[row]) : -1;
  }
}

PUMICE_DEVICE void write_out_rows(const CutBatch& batch, const CutTask& task, const TileWord& rows,
                                  int32_t tile) {
  const int32_t* const order = batch.set[task.map.out_set].order;
  for (int row = thread_index(); row < task.tile_rows; row += kTileThreads)
    task.out_row[int64_t{tile} * task.tile_rows + row] = row_of_rank(order, rows.rank[row]);
}

/// What the entries of a word are, from `entry` on, without their input rows.
PUMICE_DEVICE void write_offsets(const CutTask& task, const WordOffsets& offsets, int word,
                                 int64_t entry) {
  if (thread_index() >= offsets.count) return;
  const int k = word * kWarpThreads + offsets.bit[thread_index()];
  const uint16_t blocks = offsets.blocks[thread_index()];
  task.entry[entry + thread_index()] = {static_cast<uint16_t>(k), blocks};
  if (task.mirrored == nullptr) return;
  const int mirrored = task.map.relation.window.volume - 1 - k;
  task.mirrored[entry + thread_index()] = {static_cast<uint16_t>(mirrored), blocks};
}

/// The entries of a tile in a map whose inputs are looked up again, from `entry` on; for a whole
/// block. `loaded` is the word that `rows` holds of the tile; -1: its ranks, and no word.
PUMICE_DEVICE void write_words(const CutBatch& batch, const CutTask& task, const TileSlice& tile,
                               TileWord& rows, WordOffsets& offsets, int loaded, int64_t entry) {
  for (int word = 0; word < task.map.words; ++word) {
    if (word != loaded) {
      block_sync();   // the word before has been worked off
      rows.load(task, tile, word);
      loaded = word;
    }
    if (warp_index() == 0) offsets.find(rows, task.tile_rows / kBlockRows);
    block_sync();
    write_offsets(task, offsets, word, entry);
    for (int i = warp_index(); i < offsets.count; i += kTileWarps)
      look_up_entry(batch, task, rows, word, offsets.bit[i],
                    task.in_row + (entry + i) * task.tile_rows);
    entry += offsets.count;
  }
}

/// For a whole block. Entries that there is no room for are left out: the last block says so.
PUMICE_DEVICE void cut_tile(const CutBatch& batch, const CutTask& task, const TileSlice& tile) {
  PUMICE_BLOCK_SHARED(TileWord, rows);
  PUMICE_BLOCK_SHARED(WordOffsets, offsets);
  PUMICE_BLOCK_SHARED(int64_t, begin);
  const int blocks = task.tile_rows / kBlockRows;
  rows.load_ranks(task, tile);
  int entries = 0;
  for (int word = 0; word < task.map.words; ++word) {
    rows.load(task, tile, word);
    entries += rows.offsets(blocks);
  }
  if (thread_index() == 0) say_part(task.tile_sums, 1, tile.tile, static_cast<uint64_t>(entries));
  const bool only_counts = task.entry == nullptr;
  const bool has_found = !only_counts && task.map.found != nullptr;   // one word then
  FoundPieces found;
  if (has_found) {
    if (warp_index() == 1) offsets.find(rows, blocks);
    block_sync();
    found.read(task, rows, offsets, warp_index());   // under way while tiles are looked back to
  }
  if (!only_counts) write_out_rows(batch, task, rows, tile.tile);
  if (warp_index() == 0) {
    const uint64_t before = warp_look_back(task.tile_sums, tile.tile);
    if (lane_index() == 0) {
      say_sum(task.tile_sums, 1, tile.tile, before + static_cast<uint64_t>(entries));
      begin = static_cast<int64_t>(before);
    }
  }
  if (only_counts) return;
  block_sync();
  if (begin + entries > task.entry_capacity) return;
  if (has_found) {
    write_offsets(task, offsets, 0, begin);
    found.go_on(task, rows, offsets, begin);
  } else {
    write_words(batch, task, tile, rows, offsets, task.map.words - 1, begin);
  }
}

/// Blocks take tiles in the order in which they start: task.tile_capacity + 1 blocks a task.
PUMICE_KERNEL PUMICE_THREADS(kTileThreads, 5) void cut_tiles(PUMICE_ARGUMENT(CutBatch) batch) {
  wait_for_previous();
  const auto [task, number] = task_of_block(batch);
  const int32_t tile = take_tile(task.tile_ticket);
  const int32_t of_split = tiles_of_split(task);
  const int32_t tiles = of_split * task.splits;
  if (tile < tiles) {
    cut_tile(batch, task, tile_slice(batch, task, tile, of_split));
  } else if (tile == tiles) {
    plan_tiles(batch, task, tiles, of_split);
  }
}

/// What `cut_tiles` left out where entries had no memory: at most a block a tile. Nothing here
/// waits: all tiles have said their sums, and no ticket is taken.
PUMICE_KERNEL PUMICE_THREADS(kTileThreads, 5) void write_tiles(PUMICE_ARGUMENT(CutBatch) batch) {
  wait_for_previous();
  PUMICE_BLOCK_SHARED(TileWord, rows);
  PUMICE_BLOCK_SHARED(WordOffsets, offsets);
  const auto [task, number] = task_of_block(batch);
  const int32_t of_split = tiles_of_split(task);
  if (number >= of_split * task.splits) return;
  const TileSlice tile = tile_slice(batch, task, number, of_split);
  const uint64_t before = number == 0 ? 0 : sum_through(task.tile_sums, 1, number - 1);
  const auto begin = static_cast<int64_t>(before);
  rows.load_ranks(task, tile);
  write_out_rows(batch, task, rows, number);
  if (task.map.found == nullptr) {
    write_words(batch, task, tile, rows, offsets, -1, begin);
    return;
  }
  rows.load(task, tile, 0);
  if (warp_index() == 0) offsets.find(rows, task.tile_rows / kBlockRows);
  block_sync();
  write_offsets(task, offsets, 0, begin);
  FoundPieces found;
  found.read(task, rows, offsets, warp_index());
  found.go_on(task, rows, offsets, begin);
}

}   // namespace pumice
