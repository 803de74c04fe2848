// The pairs of a map, offset by offset, outputs in rank order within each: what the gradient of the
// weights runs over, and what the CPU's maps hold.
//
//   masks      512 ranks a tile             per offset: which of the 32 ranks of a warp have it,
//   rank  0    1.1.                         by turning the square of bits around
//   rank  1    ..11      ─▶   offset 0: ranks 0 2      offset 1: rank 2 …
//   rank  2    11..
//
// One launch for all lists of a batch, a block a tile: how many pairs of each offset the tile has,
// how many the tiles before it have, by looking back (grid/look_back.h), and each pair to where
// that says. Where the offsets begin follows from what matching counted, so that how many pairs
// there are can be known before any is listed: `count_pairs`.
#pragma once

#include <pumice/block/scan.h>
#include <pumice/formats/cut_arguments.h>
#include <pumice/grid/look_back.h>
#include <pumice/maps/input_row.h>
#include <pumice/thread/report.h>

namespace pumice {

inline constexpr int kPairWarps = kPairThreads / kWarpThreads;

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

/// For the list: where the pairs of each offset begin, and how many there are. For one whole block.
/// Whoever says it again says the same.
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

/// A block a list, where the host is to know how many pairs there are before they have memory.
PUMICE_KERNEL PUMICE_THREADS(kPairThreads) void count_pairs(PUMICE_ARGUMENT(CutBatch) batch) {
  wait_for_previous();
  begin_offsets(batch, task_of_block(batch).task);
}

/// Where the pairs of a word's offsets go that a warp finds in a tile, for the first of each.
using PairPlaces = int64_t[kPairWarps][kWarpThreads];

/// For one warp. `before` are the pairs of all offsets of earlier words, and becomes those of the
/// next word's.
PUMICE_DEVICE void place_pairs(const CutTask& task, int32_t tile, int word,
                               const TurnedMasks& turned, PairPlaces& places, int64_t& before) {
  const int64_t volume = task.map.relation.window.volume;
  const int64_t k = word * kWarpThreads + lane_index();
  uint32_t here = 0;
  for (int warp = 0; warp < kPairWarps; ++warp)
    here += static_cast<uint32_t>(popcount(turned[warp][lane_index()]));
  const int64_t of_offset = k < volume ? task.map.offset_count[k] : 0;
  const int64_t through = warp_inclusive_sum(of_offset);
  int64_t place = before + through - of_offset;
  before += warp_shuffle(through, kWarpThreads - 1);
  if (k < volume) {
    say_part(task.pair_sums + k, volume, tile, here);
    const uint32_t in_tiles_before = look_back(task.pair_sums + k, volume, tile);
    say_sum(task.pair_sums + k, volume, tile, in_tiles_before + here);
    place += in_tiles_before;
  }
  for (int warp = 0; warp < kPairWarps; ++warp) {
    places[warp][lane_index()] = place;
    place += popcount(turned[warp][lane_index()]);
  }
}

/// Blocks take tiles in the order in which they start. Pairs that there is no room for are left
/// out.
// Two blocks at once leave the 54 registers that sm_90a takes; left alone, the assembler spills one
// or two.
PUMICE_KERNEL PUMICE_THREADS(kPairThreads, 2) void list_pairs(PUMICE_ARGUMENT(CutBatch) batch) {
  wait_for_previous();
  PUMICE_BLOCK_SHARED(TurnedMasks, turned);
  PUMICE_BLOCK_SHARED(PairPlaces, places);
  const auto [task, number] = task_of_block(batch);
  const int32_t tile = take_tile(task.pair_ticket);
  if (tile == 0) begin_offsets(batch, task);
  const int64_t rows = rows_of(batch.set, task.map);
  const int64_t first = int64_t{tile} * kPairThreads;
  const int64_t rank = first + thread_index();
  if (first >= rows) return;
  const CoordinateSetRef& out = batch.set[task.map.out_set];
  const int32_t row = rank < rows ? row_of_rank(out.order, static_cast<int32_t>(rank)) : -1;
  int64_t before = 0;
  for (int word = 0; word < task.map.words; ++word) {
    const uint32_t mine = mask_word(task, rank, rows, word);
    turned[warp_index()][lane_index()] = turn_bits(mine);
    block_sync();
    if (warp_index() == 0) place_pairs(task, tile, word, turned, places, before);
    block_sync();
    for (uint32_t left = mine; left != 0; left &= left - 1) {
      const int bit = lowest_bit(left);
      const int64_t to =
          places[warp_index()][bit] + popcount(turned[warp_index()][bit] & lanes_below());
      if (to >= task.pair_capacity) continue;
      task.pair_in[to] =
          input_row(batch.set, task.map, word * kWarpThreads + bit, static_cast<int32_t>(rank));
      task.pair_out[to] = row;
    }
    block_sync();
  }
}

}   // namespace pumice
