// The row that an output and an offset lead to.
#pragma once

#include <pumice/coords/block_table.h>
#include <pumice/maps/batch_task.h>
#include <pumice/maps/neighbour_key.h>

namespace pumice {

/// The input row that an output meets through offset `k`, which its mask says it has, looked up.
PUMICE_DEVICE int32_t look_up_row(const CoordinateSetRef* sets, const MatchTask& map, int k,
                                  int32_t rank) {
  const CoordinateSetRef& in = sets[map.in_set];
  const OffsetStep& step = map.step[k];
  if (step.is_zero != 0 && map.in_set == map.out_set) return row_of_rank(in.order, rank);
  uint64_t key = 0;
  const CoordinateSetRef& out = sets[map.out_set];
  if (!neighbour_key(map.relation, in.layout, out.layout, step, out.keys[rank], key)) return -1;
  return row_of_rank(in.order, find_rank(in.table, key));
}

/// The same, from where it was noted when it was matched, if it was.
PUMICE_DEVICE int32_t input_row(const CoordinateSetRef* sets, const MatchTask& map, int k,
                                int32_t rank) {
  if (map.found != nullptr) return map.found[int64_t{rank} * map.relation.window.volume + k];
  return look_up_row(sets, map, k, rank);
}

}   // namespace pumice
