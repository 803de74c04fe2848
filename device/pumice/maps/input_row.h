// The row that an output and an offset lead to.
#pragma once

#include <pumice/coords/block_table.h>
#include <pumice/maps/map_task.h>
#include <pumice/maps/neighbour_key.h>

namespace pumice {

/// The input row that an output meets through offset `k`, which its mask says it has, looked up.
PUMICE_DEVICE int32_t look_up_row(const MapBatch& batch, const MapTask& task, int k, int32_t rank) {
  const CoordinateSetRef& in = batch.set[task.in_set];
  const OffsetStep& step = task.step[k];
  if (step.is_zero != 0 && task.in_set == task.out_set) return row_of_rank(in.order, rank);
  uint64_t key = 0;
  const CoordinateSetRef& out = batch.set[task.out_set];
  if (!neighbour_key(task.relation, in.layout, out.layout, step, out.keys[rank], key)) return -1;
  return row_of_rank(in.order, find_rank(in.table, key));
}

/// The same, from where it was noted when it was matched, if it was.
PUMICE_DEVICE int32_t input_row(const MapBatch& batch, const MapTask& task, int k, int32_t rank) {
  if (task.found != nullptr) return task.found[int64_t{rank} * task.relation.window.volume + k];
  return look_up_row(batch, task, k, rank);
}

}   // namespace pumice
