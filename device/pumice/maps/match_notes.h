// What matching notes of a word of offsets, whichever way a map is matched (maps/match.h).
#pragma once

#include <pumice/coords/block_table.h>
#include <pumice/maps/match_arguments.h>

namespace pumice {

/// Notes the input that an output of one word of offsets meets through offset `k`.
PUMICE_DEVICE void note_found(const MatchTask& task, const CoordinateSetRef& in, int64_t rank,
                              int k, int32_t input_rank) {
  if (task.found == nullptr) return;
  task.found[rank * task.relation.window.volume + k] = row_of_rank(in.order, input_rank);
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

}   // namespace pumice
