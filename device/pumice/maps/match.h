// Which offsets of a window each output has: one bit an offset, and how many outputs have each.
//
// `match_blocks`, stride 1 and short reach: a warp takes a block of 64 cells. Its lanes look the 27
// blocks around it up (in 3-D; 3, 9 or 81 elsewhere), those only that some cell of it can reach;
// then each lane is an offset, and asks of cell after cell whether its bit is set there.
//
//        ┌───┬───┬───┐
//        │ 6 │ 7 │ 8 │       cell ● with shift (+2, +1) ends in neighbour 5, local cell ○, as a
//        ├───┼───┼───┤       table of the window says: bit ○ of occupancy[5]
//        │ 3 │ ●→│○5 │
//        ├───┼───┼───┤       27 lanes, one ballot a cell: the row's mask
//        │ 0 │ 1 │ 2 │
//        └───┴───┴───┘
//
// `match_rows`, everything else: a thread takes a row and an offset, and looks the one cell up.
// Rows share a warp where the kernel has 16 offsets or fewer.
#pragma once

#include <pumice/coords/block_table.h>
#include <pumice/maps/map_task.h>
#include <pumice/maps/neighbour_key.h>

namespace pumice {

/// Which block a lane looks up: one of those around the block of its warp.
struct NeighbourBlock {
  uint64_t needed_by;             // cells of the block in the middle that lead to it
  uint32_t side[kMaxDimension];   // 0 below, 1 level, 2 above

  PUMICE_DEVICE void set(const WindowRef& window, int number) {
    needed_by = window.needed_by[number];
    PUMICE_UNROLL
    for (int axis = 0; axis < kMaxDimension; ++axis) {
      side[axis] = static_cast<uint32_t>(number % 3);
      number /= 3;
    }
  }

  /// The occupancy of this neighbour; 0 where there is none, or no cell of the block leads to it.
  PUMICE_DEVICE uint64_t look_up(const CoordinateSetRef& in, uint64_t block_key,
                                 uint64_t occupancy) const {
    bool wanted = (occupancy & needed_by) != 0;
    PUMICE_UNROLL
    for (int axis = 0; axis < kMaxDimension; ++axis) {
      if (axis >= in.layout.dimension || side[axis] == 1) continue;
      const uint64_t mask = in.layout.mask[axis] >> kBlockBits;
      const bool down = side[axis] == 0;
      // On an axis of one block there is no way up or down.
      wanted &= move_axis(block_key, mask, down ? mask : mask & (~mask + 1), down) && mask != 0;
    }
    return wanted ? find_block(in.table, block_key).occupancy : 0;
  }
};

/// Blocks of a launch that one word of a task's masks takes.
PUMICE_DEVICE int match_block_groups(const CoordinateSetRef& out) {
  constexpr int kGroup = kMatchWarps * kBlocksPerWarp;
  return static_cast<int>((out.blocks.capacity + kGroup - 1) / kGroup);
}

/// Adds what the warps of a block counted for a word of offsets to the task's counts.
PUMICE_DEVICE void add_counts(const MapTask& task, int word, uint32_t count) {
  using Counts = uint32_t[kWarpThreads];
  PUMICE_BLOCK_SHARED(Counts, counts);
  if (warp_index() == 0) counts[lane_index()] = 0;
  block_sync();
  if (count > 0) atomic_add(&counts[lane_index()], count);
  block_sync();
  const int k = word * kWarpThreads + lane_index();
  if (warp_index() == 0 && k < task.relation.window.volume && counts[lane_index()] > 0)
    atomic_add(&task.offset_count[k], counts[lane_index()]);
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

PUMICE_KERNEL PUMICE_THREADS(kMatchThreads) void match_blocks(PUMICE_ARGUMENT(MapBatch) batch) {
  using Occupancies = uint64_t[kMatchWarps][kMostNeighbours + 1];
  PUMICE_BLOCK_SHARED(Occupancies, occupancies);
  PUMICE_BLOCK_SHARED(CellMoves, moves);
  const MapTask& task = task_of_block(batch);
  const CoordinateSetRef& in = batch.set[task.in_set];
  const CoordinateSetRef& out = batch.set[task.out_set];
  const int groups = match_block_groups(out);
  const int word = (block_index() - task.first_block) / groups;
  const int group = (block_index() - task.first_block) % groups;
  const int k = word * kWarpThreads + lane_index();
  const bool has_offset = k < task.relation.window.volume;
  if (group == 0 && warp_index() == 0 && has_offset)
    task.step[k] = make_step(task.relation, in.layout, out.layout, k);

  const int64_t blocks = in.rows.poisoned() ? 0 : out.blocks.rows();
  const int64_t first = int64_t{group} * kMatchWarps * kBlocksPerWarp;
  if (first >= blocks) return;
  moves.load(task.relation.window, word);
  uint64_t* const around = occupancies[warp_index()];
  if (lane_index() == 0) around[kNowhere] = 0;
  block_sync();
  const int neighbours = neighbours_of(out.layout.dimension);
  NeighbourBlock neighbour;
  neighbour.set(task.relation.window, lane_index() < neighbours ? lane_index() : 0);
  uint32_t count = 0;
  for (int i = 0; i < kBlocksPerWarp; ++i) {
    const int64_t block = first + warp_index() + i * kMatchWarps;
    if (block >= blocks) break;
    const uint64_t occupancy = out.occupancy[block];
    const uint64_t block_key = out.block_key[block];
    int64_t rank = out.base_rank[block];
    for (int n = lane_index(); n < neighbours; n += kWarpThreads) {
      if (neighbours > kWarpThreads) neighbour.set(task.relation.window, n);
      around[n] = neighbour.look_up(in, block_key, occupancy);
    }
    warp_sync();
    for (uint64_t left = occupancy; left != 0; left &= left - 1, ++rank) {
      const uint32_t to = moves.to[lowest_bit(left)][lane_index()];
      const bool hit = (around[to / kBlockCells] >> to % kBlockCells & 1) != 0;
      const uint32_t hits = warp_ballot(hit);
      if (lane_index() == 0) task.mask[rank * task.words + word] = hits;
      count += hit ? 1 : 0;
    }
    warp_sync();
  }
  add_counts(task, word, count);
}

PUMICE_KERNEL PUMICE_THREADS(kMatchThreads) void match_rows(PUMICE_ARGUMENT(MapBatch) batch) {
  const MapTask& task = task_of_block(batch);
  const CoordinateSetRef& in = batch.set[task.in_set];
  const CoordinateSetRef& out = batch.set[task.out_set];
  const int lanes = lanes_of_row(task.relation.window.volume);
  const int rows_at_once = kMatchThreads / lanes;
  const auto group_rows = static_cast<uint32_t>(rows_at_once * kRowsPerLane);
  const auto groups =
      static_cast<int>((static_cast<uint32_t>(out.rows.capacity) + group_rows - 1) / group_rows);
  const int word = (block_index() - task.first_block) / groups;
  const int group = (block_index() - task.first_block) % groups;
  const int in_row = lane_index() % lanes;
  const int k = word * kWarpThreads + in_row;
  const bool has_offset = k < task.relation.window.volume;
  const OffsetStep step = make_step(task.relation, in.layout, out.layout, has_offset ? k : 0);
  if (group == 0 && thread_index() < lanes && has_offset) task.step[k] = step;

  const int64_t rows = rows_of(batch, task);
  const int64_t first = int64_t{group} * group_rows;
  if (first >= rows) return;
  uint32_t count = 0;
  for (int i = 0; i < kRowsPerLane; ++i) {
    const int64_t rank = first + i * rows_at_once + thread_index() / lanes;
    uint64_t key = 0;
    const bool may = has_offset && rank < rows &&
                     neighbour_key(task.relation, in.layout, out.layout, step, out.keys[rank], key);
    const bool hit =
        may && (find_block(in.table, key >> kBlockBits).occupancy & cell_bit(key)) != 0;
    const uint32_t hits = warp_ballot(hit) >> lane_index() / lanes * lanes;
    const uint32_t mine = lanes == kWarpThreads ? hits : hits & ((1u << lanes) - 1);
    if (in_row == 0 && rank < rows) task.mask[rank * task.words + word] = mine;
    count += hit ? 1 : 0;
  }
  // Lanes of one offset meet in the lane whose number is the offset's.
  for (int distance = lanes; distance < kWarpThreads; distance *= 2)
    count += warp_shuffle_down(count, distance);
  add_counts(task, word, lane_index() < lanes ? count : 0);
}

}   // namespace pumice
