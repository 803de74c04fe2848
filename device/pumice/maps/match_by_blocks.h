// Matching where inputs are as fine as outputs or twice as fine, and short reach: a warp takes a
// block of 64 cells. Its lanes look the 27 blocks around it up (in 3-D; 3, 9 or 81 elsewhere),
// those only that some cell of it can reach; then each lane is an offset, and asks of cell after
// cell whether its bit is set there.
//
//        ┌───┬───┬───┐
//        │ 6 │ 7 │ 8 │       cell ● with shift (+2, +1) ends in neighbour 5, local cell ○, as a
//        ├───┼───┼───┤       table of the window says: bit ○ of occupancy[5]
//        │ 3 │ ●→│○5 │
//        ├───┼───┼───┤       27 lanes, one ballot a cell: the row's mask
//        │ 0 │ 1 │ 2 │
//        └───┴───┴───┘
#pragma once

#include <pumice/coords/block_table.h>
#include <pumice/maps/batch_task.h>
#include <pumice/maps/match_notes.h>
#include <pumice/maps/neighbour_key.h>

namespace pumice {

/// Half a block of inputs, 32 cells: which there are, and the rank of the first.
struct alignas(8) HalfBlock {
  uint32_t cells;
  int32_t base_rank;

  PUMICE_DEVICE bool has(uint32_t cell) const { return (cells >> cell % 32 & 1) != 0; }
  PUMICE_DEVICE int32_t rank_of(uint32_t cell) const {
    return base_rank + popcount(cells & ((uint32_t{1} << cell % 32) - 1));
  }
};
struct alignas(16) HalfBlocks {
  HalfBlock half[2];
};

/// Which block a lane looks up: one of those around the block of its warp.
struct NeighbourBlock {
  uint64_t needed_by;             // cells of the block in the middle that lead to it
  uint64_t step[kMaxDimension];   // along each axis, scattered over its bits of a block key
  uint32_t negative;              // bit a: the step along axis a goes down
  bool exists;                    // false: an axis is too short for the step

  /// Steps are of two blocks at most, either way: 1 is the lowest bit of an axis and 2 the next,
  /// −1 all its bits and −2 all but the lowest.
  PUMICE_DEVICE void set(const WindowRef& window, const KeyLayout& in, int number) {
    needed_by = window.needed_by[number];
    negative = 0;
    exists = true;
    PUMICE_UNROLL
    for (int axis = 0; axis < kMaxDimension; ++axis) {
      const int distance = window.first_step[axis] + number % 3;
      number /= 3;
      const uint64_t mask = in.mask[axis] >> kBlockBits;
      const uint64_t from = distance == 2 || distance == -2 ? mask & (mask - 1) : mask;
      step[axis] = 0;
      if (axis >= in.dimension || distance == 0) continue;
      if (from == 0) exists = false;
      step[axis] = distance < 0 ? from : from & (~from + 1);
      negative |= distance < 0 ? uint32_t{1} << axis : 0;
    }
  }

  /// This neighbour of a block; nothing where there is none, or no cell of the block leads to it.
  PUMICE_DEVICE FoundBlock look_up(const CoordinateSetRef& in, uint64_t block_key,
                                   uint64_t occupancy) const {
    bool wanted = exists && (occupancy & needed_by) != 0;
    PUMICE_UNROLL
    for (int axis = 0; axis < kMaxDimension; ++axis) {
      if (axis >= in.layout.dimension) continue;
      wanted &= move_axis(block_key, in.layout.mask[axis] >> kBlockBits, step[axis],
                          (negative >> axis & 1) != 0);
    }
    return wanted ? find_block(in.table, block_key) : FoundBlock{kNoSlot, 0};
  }
};

/// Thread blocks that one word of a task's masks takes.
PUMICE_DEVICE int match_block_groups(const CoordinateSetRef& out) {
  constexpr int kGroup = kMatchWarps * kBlocksPerWarp;
  return static_cast<int>((out.blocks.capacity + kGroup - 1) / kGroup);
}

/// Where the offsets of a word lead from each cell of a block.
struct alignas(16) CellMoves {
  uint16_t to[kBlockCells][kWarpThreads];

  /// For a whole thread block.
  PUMICE_DEVICE void load(const WindowRef& window, int word) {
    constexpr int kPiece = 8;   // of 16 bytes
    const uint16_t* const from = window.cell_move + int64_t{word} * kBlockCells * kWarpThreads;
    for (int i = kPiece * thread_index(); i < kBlockCells * kWarpThreads;
         i += kPiece * kMatchThreads)
      copy_16_bytes(&to[0][0] + i, from + i);
  }
};

/// What the cells of half a block meet, each lane through its offset: sets their masks and the
/// inputs that they meet, from output `rank` on, and returns how many of the cells have the offset.
PUMICE_DEVICE uint32_t match_half(const MatchTask& task, const int32_t* order,
                                  const CellMoves& moves, const HalfBlock* around, int half,
                                  uint32_t cells, int64_t rank, int word) {
  const int64_t volume = task.relation.window.volume;
  int32_t* const found = task.found == nullptr
                             ? nullptr
                             : task.found + rank * volume + word * kWarpThreads + lane_index();
  const uint16_t* const move = &moves.to[32 * half][lane_index()];
  uint32_t mask = 0;   // of the cell that is the lane's
  uint32_t count = 0;
  const int all = popcount(cells);
  // Several cells at a time: what they read is under way together.
  for (int at = 0; at < all; at += kCellsAtOnce) {
    bool hit[kCellsAtOnce];
    int32_t in[kCellsAtOnce];
    PUMICE_UNROLL
    for (int i = 0; i < kCellsAtOnce; ++i) {
      const bool is_there = cells != 0;
      const uint32_t to = move[is_there ? lowest_bit(cells) * kWarpThreads : 0];
      cells &= cells - 1;
      const HalfBlock there = around[to / 32];
      hit[i] = is_there && there.has(to);
      in[i] = there.rank_of(to);
    }
    PUMICE_UNROLL
    for (int i = 0; i < kCellsAtOnce; ++i) {
      const uint32_t hits = warp_ballot(hit[i]);
      if (lane_index() == at + i) mask = hits;
      count += hit[i] ? 1 : 0;
    }
    if (found == nullptr) continue;
    if (order != nullptr) {
      PUMICE_UNROLL
      for (int i = 0; i < kCellsAtOnce; ++i)
        if (hit[i]) in[i] = order[in[i]];
    }
    PUMICE_UNROLL
    for (int i = 0; i < kCellsAtOnce; ++i)
      if (hit[i]) found[(at + i) * volume] = in[i];
  }
  if (lane_index() < all) task.mask[(rank + lane_index()) * task.words + word] = mask;
  return count;
}

PUMICE_DEVICE void match_by_blocks(const MatchBatch& batch, const MatchTask& task, int number) {
  using Neighbourhoods = HalfBlocks[kMatchWarps][kMostNeighbours + 1];
  PUMICE_BLOCK_SHARED(Neighbourhoods, neighbourhoods);
  PUMICE_BLOCK_SHARED(CellMoves, moves);
  const CoordinateSetRef& in = batch.set[task.in_set];
  const CoordinateSetRef& out = batch.set[task.out_set];
  const int groups = match_block_groups(out);
  const int word = number / groups;
  const int group = number % groups;
  const int k = word * kWarpThreads + lane_index();
  if (group == 0 && warp_index() == 0 && k < task.relation.window.volume)
    task.step[k] = make_step(task.relation, in.layout, out.layout, k);

  const int64_t blocks = in.rows.poisoned() ? 0 : out.blocks.rows();
  const int64_t first = int64_t{group} * kMatchWarps * kBlocksPerWarp;
  if (first >= blocks) return;
  moves.load(task.relation.window, word);
  HalfBlocks* const around = neighbourhoods[warp_index()];
  if (lane_index() == 0) around[kNowhere] = {};
  block_sync();
  const int neighbours = neighbours_of(out.layout.dimension);
  NeighbourBlock neighbour;
  // Tables are for the most neighbours there can be: nothing leads to those that are too many.
  neighbour.set(task.relation.window, in.layout, lane_index());
  const int finer = task.relation.keys == KeyRelation::in_is_finer ? in.layout.dimension : 0;
  uint32_t count = 0;
  for (int i = 0; i < kBlocksPerWarp; ++i) {
    const int64_t block = first + warp_index() + i * kMatchWarps;
    if (block >= blocks) break;
    const uint64_t occupancy = out.occupancy[block];
    const uint64_t block_key = out.block_key[block] << finer;
    const int64_t rank = out.base_rank[block];
    for (int n = lane_index(); n < neighbours; n += kWarpThreads) {
      if (neighbours > kWarpThreads) neighbour.set(task.relation.window, in.layout, n);
      const FoundBlock found = neighbour.look_up(in, block_key, occupancy);
      const int32_t base = found.slot == kNoSlot ? 0 : in.table.slot_rank[found.slot];
      const auto low = static_cast<uint32_t>(found.occupancy);
      around[n] = {
          {{low, base}, {static_cast<uint32_t>(found.occupancy >> 32), base + popcount(low)}}};
    }
    warp_sync();
    const auto low = static_cast<uint32_t>(occupancy);
    const auto high = static_cast<uint32_t>(occupancy >> 32);
    count += match_half(task, in.order, moves, &around[0].half[0], 0, low, rank, word);
    count +=
        match_half(task, in.order, moves, &around[0].half[0], 1, high, rank + popcount(low), word);
    warp_sync();
  }
  add_counts(task, word, count);
}

}   // namespace pumice
