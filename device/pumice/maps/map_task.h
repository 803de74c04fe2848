// Finding one's way in a batch of maps.
#pragma once

#include <pumice/maps/map_arguments.h>
#include <pumice/platform.h>

namespace pumice {

/// The task that this block of a launch works for, and the number of the block among the task's.
struct TaskBlock {
  const MapTask& task;
  int block;
};

PUMICE_DEVICE TaskBlock task_of_block(const MapBatch& batch) {
  int at = 0;
  while (at + 1 < batch.tasks && batch.first_block[at + 1] <= block_index())
    ++at;
  return {batch.task[at], block_index() - batch.first_block[at]};
}

PUMICE_DEVICE bool poisoned_sets(const MapBatch& batch, const MapTask& task) {
  return batch.set[task.in_set].rows.poisoned() || batch.set[task.out_set].rows.poisoned();
}

/// Outputs of a task; none where either set is poison.
PUMICE_DEVICE int64_t rows_of(const MapBatch& batch, const MapTask& task) {
  return poisoned_sets(batch, task) ? 0 : batch.set[task.out_set].rows.rows();
}

}   // namespace pumice
