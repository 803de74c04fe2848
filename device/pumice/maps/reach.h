// Every cell that some offset leads to from some cell of a set: the outputs of a convolution that
// dilates, and of one that generates. A thread takes a cell and an offset, and marks where it ends
// up as a bit of a block.
//
//   stride 2, size 3: cell 4 is reached from 7, 8 and 9; cell 7 reaches 3 and 4, cell 8 only 4
#pragma once

#include <pumice/coords/mark_cell.h>
#include <pumice/maps/neighbour_key.h>
#include <pumice/maps/parity.h>
#include <pumice/maps/reach_arguments.h>

namespace pumice {

/// Lanes of a warp take the offsets of a cell, 32 at a time; short kernels share a warp.
PUMICE_KERNEL PUMICE_THREADS(kReachThreads) void mark_reached(PUMICE_ARGUMENT(ReachArguments) a) {
  wait_for_previous();
  const int volume = a.relation.window.volume;
  const int lanes = lanes_of_row(volume);
  const int k = block_index_y() * kWarpThreads + lane_index() % lanes;
  if (k >= volume) return;
  const OffsetStep step = make_step(a.relation, a.reached, a.layout, k);
  const int64_t rows = a.rows.rows();
  const int rows_at_once = kReachThreads / lanes;
  int64_t rank = int64_t{block_index()} * rows_at_once * kReachRowsPerLane + thread_index() / lanes;
  for (int i = 0; i < kReachRowsPerLane && rank < rows; ++i, rank += rows_at_once) {
    uint64_t key = 0;
    if (!neighbour_key(a.relation, a.reached, a.layout, step, a.keys[rank], key)) continue;
    if (inside_box(a.box, a.reached, key)) mark_cell(a.marked, key);
  }
}

/// The same where the cells that are reached are half as fine: lanes take the offsets of a cell's
/// parities, and none that leads nowhere. On an H200, 105,000 cells of 27 offsets by
/// `mark_reached`: 51 µs.
PUMICE_KERNEL PUMICE_THREADS(kReachThreads) void mark_reached_by_parity(
    PUMICE_ARGUMENT(ReachArguments) a) {
  wait_for_previous();
  using Steps = OffsetStep[kWarpThreads];
  PUMICE_BLOCK_SHARED(Steps, steps);
  const WindowRef& window = a.relation.window;
  const int lanes = window.parity_lanes;
  const int rows_at_once = kReachThreads / lanes;
  const int64_t rows = a.rows.rows();
  const int64_t first = int64_t{block_index()} * rows_at_once * kReachRowsPerLane;
  if (first >= rows) return;
  if (thread_index() < window.volume)
    steps[thread_index()] = make_step(a.relation, a.reached, a.layout, thread_index());
  block_sync();
  for (int i = 0; i < kReachRowsPerLane; ++i) {
    const int64_t rank = first + i * rows_at_once + thread_index() / lanes;
    if (rank >= rows) return;
    uint64_t key = a.keys[rank];
    const ParityOffsets offsets(window, a.layout.dimension, key);
    const int at = thread_index() % lanes;
    if (at >= offsets.count) continue;
    if (!neighbour_key(a.relation, a.reached, a.layout, steps[offsets.first[at]], key, key))
      continue;
    if (inside_box(a.box, a.reached, key)) mark_cell(a.marked, key);
  }
}

}   // namespace pumice
