// Which offsets of a window each output has: one bit an offset, how many outputs have each, and
// which inputs those lead to. One launch for all maps of a batch, each matched in one of four ways:
//
// by blocks, inputs as fine as outputs or twice as fine, and short reach: a warp takes a block
// of 64 cells. Its lanes look the 27 blocks around it up (in 3-D; 3, 9 or 81 elsewhere), those only
// that some cell of it can reach; then each lane is an offset, and asks of cell after cell whether
// its bit is set there.
//
//        ┌───┬───┬───┐
//        │ 6 │ 7 │ 8 │       cell ● with shift (+2, +1) ends in neighbour 5, local cell ○, as a
//        ├───┼───┼───┤       table of the window says: bit ○ of occupancy[5]
//        │ 3 │ ●→│○5 │
//        ├───┼───┼───┤       27 lanes, one ballot a cell: the row's mask
//        │ 0 │ 1 │ 2 │
//        └───┴───┴───┘
//
// By children, inputs twice as fine and no others than an output is made of: a thread a row
// looks up the one block that they lie in, side by side.
//
// By parities, inputs half as fine: a few lanes a row, one for each offset of the row's parity
// (maps/parity.h).
//
// By rows, everything else: a thread takes a row and an offset, and looks the one cell up.
// Rows share a warp where the kernel has 16 offsets or fewer.
#pragma once

#include <pumice/coords/block_table.h>
#include <pumice/maps/batch_task.h>
#include <pumice/maps/neighbour_key.h>
#include <pumice/maps/parity.h>

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

/// Notes the input that an output of one word of offsets meets through offset `k`.
PUMICE_DEVICE void note_found(const MatchTask& task, const CoordinateSetRef& in, int64_t rank,
                              int k, int32_t input_rank) {
  if (task.found == nullptr) return;
  task.found[rank * task.relation.window.volume + k] = row_of_rank(in.order, input_rank);
}

/// Thread blocks that one word of a task's masks takes.
PUMICE_DEVICE int match_block_groups(const CoordinateSetRef& out) {
  constexpr int kGroup = kMatchWarps * kBlocksPerWarp;
  return static_cast<int>((out.blocks.capacity + kGroup - 1) / kGroup);
}

/// Adds what the warps of a block counted for a word of offsets to the task's counts.
PUMICE_DEVICE void add_counts(const MatchTask& task, int word, uint32_t count) {
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

PUMICE_DEVICE void match_by_rows(const MatchBatch& batch, const MatchTask& task, int number) {
  const CoordinateSetRef& in = batch.set[task.in_set];
  const CoordinateSetRef& out = batch.set[task.out_set];
  const int lanes = lanes_of_row(task.relation.window.volume);
  const int rows_at_once = kMatchThreads / lanes;
  const auto group_rows = static_cast<uint32_t>(rows_at_once * kRowsPerLane);
  const auto groups =
      static_cast<int>((static_cast<uint32_t>(out.rows.capacity) + group_rows - 1) / group_rows);
  const int word = number / groups;
  const int group = number % groups;
  const int in_row = lane_index() % lanes;
  const int k = word * kWarpThreads + in_row;
  const bool has_offset = k < task.relation.window.volume;
  const OffsetStep step = make_step(task.relation, in.layout, out.layout, has_offset ? k : 0);
  if (group == 0 && thread_index() < lanes && has_offset) task.step[k] = step;

  const int64_t rows = rows_of(batch.set, task);
  const int64_t first = int64_t{group} * group_rows;
  if (first >= rows) return;
  uint32_t count = 0;
  for (int i = 0; i < kRowsPerLane; ++i) {
    const int64_t rank = first + i * rows_at_once + thread_index() / lanes;
    uint64_t key = 0;
    const bool may = has_offset && rank < rows &&
                     neighbour_key(task.relation, in.layout, out.layout, step, out.keys[rank], key);
    const int32_t found = may ? find_rank(in.table, key) : -1;
    const bool hit = found >= 0;
    if (hit) note_found(task, in, rank, k, found);
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

/// The steps of a word of offsets, and how many outputs of a block have each.
struct ParityWord {
  OffsetStep step[kWarpThreads];
  uint32_t count[kWarpThreads];
};

PUMICE_DEVICE void match_by_parities(const MatchBatch& batch, const MatchTask& task, int number) {
  PUMICE_BLOCK_SHARED(ParityWord, word);
  const WindowRef& window = task.relation.window;
  const CoordinateSetRef& in = batch.set[task.in_set];
  const CoordinateSetRef& out = batch.set[task.out_set];
  const int lanes = window.parity_lanes;
  const int rows_at_once = kMatchThreads / lanes;
  const int64_t rows = rows_of(batch.set, task);
  const int64_t group = number;
  const int64_t first = group * rows_at_once * kParityRowsPerLane;
  if (thread_index() < window.volume) {
    const OffsetStep step = make_step(task.relation, in.layout, out.layout, thread_index());
    word.step[thread_index()] = step;
    word.count[thread_index()] = 0;
    if (group == 0) task.step[thread_index()] = step;
  }
  if (first >= rows) return;
  block_sync();
  for (int i = 0; i < kParityRowsPerLane; ++i) {
    const int64_t rank = first + i * rows_at_once + thread_index() / lanes;
    uint32_t mask = 0;
    if (rank < rows) {
      uint64_t key = out.keys[rank];
      const ParityOffsets offsets(window, out.layout.dimension, key);
      const int at = thread_index() % lanes;
      const int k = at < offsets.count ? offsets.first[at] : -1;
      if (k >= 0 && neighbour_key(task.relation, in.layout, out.layout, word.step[k], key, key)) {
        const int32_t found = find_rank(in.table, key);
        if (found >= 0) {
          mask = uint32_t{1} << k;
          note_found(task, in, rank, k, found);
          atomic_add(&word.count[k], 1u);
        }
      }
    }
    for (int distance = 1; distance < lanes; distance *= 2)
      mask |= warp_shuffle_xor(mask, distance);
    if (rank < rows && thread_index() % lanes == 0) task.mask[rank] = mask;
  }
  block_sync();
  if (thread_index() < window.volume && word.count[thread_index()] > 0)
    atomic_add(&task.offset_count[thread_index()], word.count[thread_index()]);
}

PUMICE_DEVICE void match_by_children(const MatchBatch& batch, const MatchTask& task, int number) {
  using Counts = uint32_t[1 << kMaxDimension];
  PUMICE_BLOCK_SHARED(Counts, counts);   // how many outputs of the block have each offset
  const WindowRef& window = task.relation.window;
  const CoordinateSetRef& in = batch.set[task.in_set];
  const CoordinateSetRef& out = batch.set[task.out_set];
  const int children = 1 << out.layout.dimension;
  if (number == 0 && thread_index() < window.volume)
    task.step[thread_index()] = make_step(task.relation, in.layout, out.layout, thread_index());
  const int64_t rows = rows_of(batch.set, task);
  const int64_t first = int64_t{number} * kMatchThreads;
  if (first >= rows) return;
  if (thread_index() < children) counts[thread_index()] = 0;
  block_sync();
  const int64_t rank = first + thread_index();
  if (rank < rows) {
    const uint64_t first_child = out.keys[rank] << out.layout.dimension;
    const FoundBlock block = find_block(in.table, first_child >> kBlockBits);
    const auto from_first_on =
        static_cast<uint32_t>(block.occupancy >> (first_child & (kBlockCells - 1)));
    const uint64_t before_first = block.occupancy & (cell_bit(first_child) - 1);
    uint32_t there = from_first_on & ((uint32_t{1} << children) - 1);
    uint32_t mask = 0;
    int32_t rank_in = there == 0 ? 0 : in.table.slot_rank[block.slot] + popcount(before_first);
    for (; there != 0; there &= there - 1, ++rank_in) {
      const int k = window.of_child[lowest_bit(there)];
      if (k == kNoOffset) continue;
      mask |= uint32_t{1} << k;
      note_found(task, in, rank, k, rank_in);
      atomic_add(&counts[k], 1u);
    }
    task.mask[rank] = mask;
  }
  block_sync();
  if (thread_index() < window.volume && counts[thread_index()] > 0)
    atomic_add(&task.offset_count[thread_index()], counts[thread_index()]);
}

/// Blocks of a launch are shared out among the tasks, each with as many as its matching takes.
// Four blocks at once leave 64 registers a thread, which matching by blocks, most of the work,
// takes.
PUMICE_KERNEL PUMICE_THREADS(kMatchThreads, 4) void match_maps(PUMICE_ARGUMENT(MatchBatch) batch) {
  wait_for_previous();
  const auto [task, number] = task_of_block(batch);
  switch (matching_of(task.relation.window)) {
    case Matching::blocks: match_by_blocks(batch, task, number); return;
    case Matching::children: match_by_children(batch, task, number); return;
    case Matching::parities: match_by_parities(batch, task, number); return;
    case Matching::rows: match_by_rows(batch, task, number); return;
  }
}

}   // namespace pumice
