// Dropping rows of a set. The rows that stay keep their order, and so do the ranks, so both are
// counted: two compactions side by side.
//
//   row            0  1  2  3  4           rank -> row    3  0  4  1  2
//   keep           ●  ·  ●  ●  ·           keep           ●  ●  ·  ·  ●
//   new row        0     1  2              new rank       0  1        2
//                                          new row of it  2  0        1
//
//   count_kept ─▶ sum_kept (one block) ─▶ write_kept_rows ─▶ write_kept_ranks
#pragma once

#include <pumice/block/scan.h>
#include <pumice/coords/prune_arguments.h>

namespace pumice {

PUMICE_DEVICE bool keeps_row(const PruneArguments& a, int64_t row, int64_t rows) {
  return row < rows && a.keep[row] != 0;
}

PUMICE_DEVICE bool keeps_rank(const PruneArguments& a, int64_t rank, int64_t rows) {
  return rank < rows && a.keep[a.order == nullptr ? rank : a.order[rank]] != 0;
}

/// One block a tile, as in the kernels that write.
PUMICE_KERNEL PUMICE_THREADS(kPruneThreads) void count_kept(PUMICE_ARGUMENT(PruneArguments) a) {
  wait_for_previous();
  const int64_t rows = a.rows.rows();
  if (int64_t{block_index()} * kPruneThreads >= rows) return;
  const int64_t i = global_thread_index();
  const uint64_t both =
      (keeps_row(a, i, rows) ? 1u : 0u) | (keeps_rank(a, i, rows) ? uint64_t{1} << 32 : 0u);
  const uint64_t sum = block_sum<kPruneThreads>(both);
  if (thread_index() != 0) return;
  a.row_begin[block_index()] = static_cast<uint32_t>(sum);
  a.rank_begin[block_index()] = static_cast<uint32_t>(sum >> 32);
}

PUMICE_KERNEL PUMICE_THREADS(kPruneSumThreads) void sum_kept(PUMICE_ARGUMENT(PruneArguments) a) {
  wait_for_previous();
  const int64_t tiles = (a.rows.rows() + kPruneThreads - 1) / kPruneThreads;
  uint64_t before = 0;
  for (int64_t first = 0; first < tiles; first += kPruneSumThreads) {
    const int64_t tile = first + thread_index();
    const uint64_t mine =
        tile < tiles ? a.row_begin[tile] | static_cast<uint64_t>(a.rank_begin[tile]) << 32 : 0;
    uint64_t total = 0;
    const uint64_t begin = before + block_exclusive_sum<kPruneSumThreads>(mine, total);
    if (tile < tiles) {
      a.row_begin[tile] = static_cast<uint32_t>(begin);
      a.rank_begin[tile] = static_cast<uint32_t>(begin >> 32);
    }
    before += total;
  }
  if (thread_index() == 0)
    *a.count = a.rows.poisoned() ? kPoison : static_cast<int64_t>(before & 0xffffffffu);
}

PUMICE_KERNEL PUMICE_THREADS(kPruneThreads) void write_kept_rows(PUMICE_ARGUMENT(PruneArguments)
                                                                     a) {
  wait_for_previous();
  const int64_t rows = a.rows.rows();
  if (int64_t{block_index()} * kPruneThreads >= rows) return;
  const int64_t row = global_thread_index();
  const bool keeps = keeps_row(a, row, rows);
  uint32_t total = 0;
  const uint32_t to =
      a.row_begin[block_index()] + block_exclusive_sum<kPruneThreads>(keeps ? 1u : 0u, total);
  if (!keeps) return;
  a.new_row[row] = static_cast<int32_t>(to);
  if (to < a.kept_capacity) a.kept[to] = static_cast<int32_t>(row);
}

PUMICE_KERNEL PUMICE_THREADS(kPruneThreads) void write_kept_ranks(PUMICE_ARGUMENT(PruneArguments)
                                                                      a) {
  wait_for_previous();
  const int64_t rows = a.rows.rows();
  if (int64_t{block_index()} * kPruneThreads >= rows) return;
  const int64_t rank = global_thread_index();
  const bool keeps = keeps_rank(a, rank, rows);
  uint32_t total = 0;
  const uint32_t to =
      a.rank_begin[block_index()] + block_exclusive_sum<kPruneThreads>(keeps ? 1u : 0u, total);
  if (!keeps) return;
  a.kept_keys[to] = a.keys[rank];
  a.kept_rows[to] = static_cast<uint32_t>(a.new_row[a.order == nullptr ? rank : a.order[rank]]);
}

}   // namespace pumice
