// Which offsets of a window each output has: one bit an offset, how many outputs have each, and
// which inputs those lead to. One launch for all maps of a batch, each matched in one of four ways:
//
// By blocks, inputs as fine as outputs or twice as fine, and short reach: a warp takes a block of
// 64 cells (maps/match_by_blocks.h).
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
#include <pumice/maps/match_by_blocks.h>
#include <pumice/maps/match_notes.h>
#include <pumice/maps/neighbour_key.h>
#include <pumice/maps/parity.h>

namespace pumice {

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
