// A set from cells marked as bits of blocks: whatever reaches cells, the outputs of a dilating or
// a generative convolution, ORs them into blocks that it finds or claims in a table, and what is
// left to do is to put a few blocks in order instead of many cells.
//
//   mark (by whoever)     blocks in no order:   9 ..1.1    2 1....    5 .11..
//   sort their keys                             2          5          9
//   count_block_cells     bits of each tile of 256 blocks
//   sum_block_cells       one block: bits before each tile; how many in all, and whether there is
//   room write_block_cells     base ranks, the table's ranks, and the keys of the cells:
//                                               2·64+0 │ 5·64+1 5·64+2 │ 9·64+2 9·64+4
#pragma once

#include <pumice/block/scan.h>
#include <pumice/coords/block_set_arguments.h>
#include <pumice/thread/report.h>

namespace pumice {

PUMICE_DEVICE uint64_t marked_cells(const BlockSetArguments& a, int64_t block, int64_t blocks) {
  return block < blocks ? ~a.set.slots[a.slot_of[block]].occupancy : 0;
}

PUMICE_KERNEL PUMICE_THREADS(kBlockSetThreads) void count_block_cells(
    PUMICE_ARGUMENT(BlockSetArguments) a) {
  const int64_t blocks = a.marked.rows();
  if (int64_t{block_index()} * kBlockSetThreads >= blocks) return;
  const auto cells =
      static_cast<uint32_t>(popcount(marked_cells(a, global_thread_index(), blocks)));
  const uint32_t sum = block_sum<kBlockSetThreads>(cells);
  if (thread_index() == 0) a.tile_cells[block_index()] = sum;
}

PUMICE_DEVICE void publish_block_set(const BlockSetArguments& a, int64_t cells) {
  const Level& set = a.set;
  int64_t rows = cells;
  int64_t blocks = a.marked.rows();
  if (a.source.poisoned()) {
    report(a.status, kPoisonedInput, set.row_site, *a.source.count, a.source.capacity);
    rows = blocks = kPoison;
  } else if (a.marked.poisoned()) {
    report(a.status, kOverCapacity, set.block_site, *a.marked.count, a.marked.capacity);
    rows = kPoison;
    blocks = *a.marked.count;
  } else if (cells > set.row_capacity) {
    report(a.status, kOverCapacity, set.row_site, cells, set.row_capacity);
    blocks = kPoison;
  }
  *set.row_count = rows;
  *set.block_count = blocks;
}

PUMICE_KERNEL PUMICE_THREADS(kBlockSumThreads) void sum_block_cells(
    PUMICE_ARGUMENT(BlockSetArguments) a) {
  const int64_t tiles = (a.marked.rows() + kBlockSetThreads - 1) / kBlockSetThreads;
  int64_t before = 0;
  for (int64_t first = 0; first < tiles; first += kBlockSumThreads) {
    const int64_t tile = first + thread_index();
    int64_t total = 0;
    const int64_t mine = tile < tiles ? a.tile_cells[tile] : 0;
    const int64_t begin = before + block_exclusive_sum<kBlockSumThreads>(mine, total);
    if (tile < tiles) a.tile_cells[tile] = static_cast<uint32_t>(begin);
    before += total;
  }
  if (thread_index() == 0) publish_block_set(a, before);
}

PUMICE_KERNEL PUMICE_THREADS(kBlockSetThreads) void write_block_cells(
    PUMICE_ARGUMENT(BlockSetArguments) a) {
  const Level& set = a.set;
  if (RowCountRef{set.row_count, set.row_capacity}.poisoned()) return;
  const int64_t blocks = a.marked.rows();
  if (int64_t{block_index()} * kBlockSetThreads >= blocks) return;
  const int64_t block = global_thread_index();
  const uint64_t cells = marked_cells(a, block, blocks);
  uint32_t total = 0;
  uint32_t rank = a.tile_cells[block_index()] + block_exclusive_sum<kBlockSetThreads>(
                                                    static_cast<uint32_t>(popcount(cells)), total);
  if (block >= blocks) return;
  const uint64_t key = a.keys[block];
  set.block_key[block] = key;
  set.occupancy[block] = cells;
  set.base_rank[block] = static_cast<int32_t>(rank);
  set.slots[a.slot_of[block]].occupancy = cells;
  set.slot_rank[a.slot_of[block]] = static_cast<int32_t>(rank);
  for (uint64_t left = cells; left != 0; left &= left - 1)
    set.keys[rank++] = key << kBlockBits | static_cast<uint64_t>(lowest_bit(left));
}

}   // namespace pumice
