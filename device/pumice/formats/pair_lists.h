// The pairs of a map, offset by offset, outputs in rank order within each: what the gradient of the
// weights runs over, and what the CPU's maps hold.
//
//   masks      256 ranks a tile             per offset: which of the 32 ranks of a warp have it,
//   rank  0    1.1.                         by turning the square of bits around
//   rank  1    ..11      ─▶   offset 0: ranks 0 2      offset 1: rank 2 …
//   rank  2    11..
//
//   count_pairs   a block a tile: pairs of each offset in it
//   sum_pairs     a block an offset: pairs before each tile; the first also the offsets' beginnings
//   write_pairs   a block a tile: each pair to where the sums say
#pragma once

#include <pumice/block/scan.h>
#include <pumice/formats/cut_arguments.h>
#include <pumice/maps/input_row.h>
#include <pumice/thread/report.h>

namespace pumice {

inline constexpr int kPairWarps = kPairThreads / kWarpThreads;

PUMICE_DEVICE int64_t pair_tiles(int64_t rows) {
  return (rows + kPairThreads - 1) / kPairThreads;
}

/// Lane k receives the word whose bit l is bit k of lane l's word: the square of bits, turned.
PUMICE_DEVICE uint32_t turn_bits(uint32_t word) {
  uint32_t turned = 0;
  PUMICE_UNROLL
  for (int k = 0; k < kWarpThreads; ++k) {
    const uint32_t lanes = warp_ballot((word >> k & 1) != 0);
    if (lane_index() == k) turned = lanes;
  }
  return turned;
}

PUMICE_DEVICE uint32_t mask_word(const CutTask& task, int64_t rank, int64_t rows, int word) {
  return rank < rows ? task.map.mask[rank * task.map.words + word] : 0;
}

/// For each warp of a tile and each offset of a word, the ranks that have it.
using TurnedMasks = uint32_t[kPairWarps][kWarpThreads];

PUMICE_KERNEL PUMICE_THREADS(kPairThreads) void count_pairs(PUMICE_ARGUMENT(CutBatch) batch) {
  wait_for_previous();
  PUMICE_BLOCK_SHARED(TurnedMasks, turned);
  const auto [task, tile] = task_of_block(batch);
  const int64_t rows = rows_of(batch.set, task.map);
  const int64_t first = int64_t{tile} * kPairThreads;
  const int64_t rank = first + thread_index();
  if (first >= rows) return;
  for (int word = 0; word < task.map.words; ++word) {
    turned[warp_index()][lane_index()] = turn_bits(mask_word(task, rank, rows, word));
    block_sync();
    const int k = word * kWarpThreads + lane_index();
    if (warp_index() == 0 && k < task.map.relation.window.volume) {
      int count = 0;
      for (int warp = 0; warp < kPairWarps; ++warp)
        count += popcount(turned[warp][lane_index()]);
      task.tile_pairs[int64_t{k} * pair_tiles(rows) + tile] = static_cast<uint32_t>(count);
    }
    block_sync();
  }
}

/// The pairs of the offsets before `k`, and in the last place all of them.
PUMICE_DEVICE void begin_offsets(const CutBatch& batch, const CutTask& task) {
  int64_t before = 0;
  for (int first = 0; first < task.map.relation.window.volume; first += kPairThreads) {
    const int k = first + thread_index();
    int64_t total = 0;
    const int64_t mine = k < task.map.relation.window.volume ? task.map.offset_count[k] : 0;
    const int64_t begin = before + block_exclusive_sum<kPairThreads>(mine, total);
    if (k < task.map.relation.window.volume) task.offset_begin[k] = begin;
    before += total;
  }
  if (thread_index() != 0) return;
  const bool poisoned = poisoned_sets(batch.set, task.map);
  task.offset_begin[task.map.relation.window.volume] = poisoned ? 0 : before;
  *task.pair_count = poisoned ? kPoison : before;
  if (!poisoned && before > task.pair_capacity)
    report(batch.status, kOverCapacity, task.pair_site, before, task.pair_capacity);
}

/// One block an offset. What is counted in a tile becomes the pairs of the offset in those before.
PUMICE_KERNEL PUMICE_THREADS(kPairThreads) void sum_pairs(PUMICE_ARGUMENT(CutBatch) batch) {
  wait_for_previous();
  const auto [task, k] = task_of_block(batch);
  const int64_t tiles = pair_tiles(rows_of(batch.set, task.map));
  if (k == 0) begin_offsets(batch, task);
  uint32_t* const pairs = task.tile_pairs + k * tiles;
  uint32_t before = 0;
  for (int64_t first = 0; first < tiles; first += kPairThreads) {
    const int64_t tile = first + thread_index();
    uint32_t total = 0;
    const uint32_t begin =
        before + block_exclusive_sum<kPairThreads>(tile < tiles ? pairs[tile] : 0, total);
    if (tile < tiles) pairs[tile] = begin;
    before += total;
  }
}

// Asking for six blocks at once frees 42 registers a thread; left alone, the assembler aims at 32
// and spills one.
PUMICE_KERNEL PUMICE_THREADS(kPairThreads, 6) void write_pairs(PUMICE_ARGUMENT(CutBatch) batch) {
  wait_for_previous();
  using Places = int64_t[kPairWarps][kWarpThreads];
  PUMICE_BLOCK_SHARED(TurnedMasks, turned);
  PUMICE_BLOCK_SHARED(Places, places);   // of each warp's first pair of an offset
  const auto [task, tile] = task_of_block(batch);
  if (RowCountRef{task.pair_count, task.pair_capacity}.poisoned()) return;
  const int64_t rows = rows_of(batch.set, task.map);
  const int64_t first = int64_t{tile} * kPairThreads;
  const int64_t rank = first + thread_index();
  if (first >= rows) return;
  const CoordinateSetRef& out = batch.set[task.map.out_set];
  const int32_t row = rank < rows ? row_of_rank(out.order, static_cast<int32_t>(rank)) : -1;
  for (int word = 0; word < task.map.words; ++word) {
    const uint32_t mine = mask_word(task, rank, rows, word);
    turned[warp_index()][lane_index()] = turn_bits(mine);
    block_sync();
    const int k = word * kWarpThreads + lane_index();
    if (warp_index() == 0 && k < task.map.relation.window.volume) {
      int64_t place = task.offset_begin[k] + task.tile_pairs[int64_t{k} * pair_tiles(rows) + tile];
      for (int warp = 0; warp < kPairWarps; ++warp) {
        places[warp][lane_index()] = place;
        place += popcount(turned[warp][lane_index()]);
      }
    }
    block_sync();
    for (uint32_t left = mine; left != 0; left &= left - 1) {
      const int bit = lowest_bit(left);
      const int64_t to =
          places[warp_index()][bit] + popcount(turned[warp_index()][bit] & lanes_below());
      task.pair_in[to] =
          input_row(batch.set, task.map, word * kWarpThreads + bit, static_cast<int32_t>(rank));
      task.pair_out[to] = row;
    }
    block_sync();
  }
}

}   // namespace pumice
