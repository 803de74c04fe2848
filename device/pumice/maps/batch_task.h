// Finding one's way in a batch of maps, searched or cut.
#pragma once

#include <pumice/maps/match_arguments.h>
#include <pumice/platform.h>

namespace pumice {

/// The task that this block of a launch works for, and the number of the block among the task's.
template <class Task> struct TaskBlock {
  const Task& task;
  int block;
};

template <class Batch>
PUMICE_DEVICE TaskBlock<typename Batch::Task> task_of_block(const Batch& batch) {
  int at = 0;
  while (at + 1 < batch.tasks && batch.first_block[at + 1] <= block_index())
    ++at;
  return {batch.task[at], block_index() - batch.first_block[at]};
}

PUMICE_DEVICE bool poisoned_sets(const CoordinateSetRef* sets, const MatchTask& map) {
  return sets[map.in_set].rows.poisoned() || sets[map.out_set].rows.poisoned();
}

/// Outputs of a map; none where either set is poison.
PUMICE_DEVICE int64_t rows_of(const CoordinateSetRef* sets, const MatchTask& map) {
  return poisoned_sets(sets, map) ? 0 : sets[map.out_set].rows.rows();
}

}   // namespace pumice
