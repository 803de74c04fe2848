// Cutting lists of pairs into tiles of one offset each, which is what fetch-on-demand runs on, in
// the form of shared/tile_map.h: a tile has one entry, its positions are pairs.
//
//   pairs      offset 0: ▮▮▮▮▮▮▮▮▮▮     offset 1: ▮▮▮     offset 2: …
//   tiles                [▮▮▮▮][▮▮▮▮][▮▮··]        [▮▮▮·]           [ …
//
//   plan_pair_tiles   one block: where the tiles of each offset begin, and how many there are
//   fill_pair_tiles   a block a tile: its entry, the rows of each position
//   index_pairs       a thread a pair: which pair an output row has of an offset
#pragma once

#include <pumice/block/scan.h>
#include <pumice/formats/pair_tile_arguments.h>
#include <pumice/thread/search.h>

namespace pumice {

PUMICE_KERNEL PUMICE_THREADS(kPairPlanThreads) void plan_pair_tiles(
    PUMICE_ARGUMENT(PairTilesArguments) a) {
  wait_for_previous();
  const bool poisoned = a.pairs.pairs.poisoned();
  int64_t before = 0;
  for (int32_t first = 0; first < a.pairs.offsets; first += kPairPlanThreads) {
    const int32_t k = first + thread_index();
    int64_t tiles = 0;
    if (!poisoned && k < a.pairs.offsets) {
      const int64_t pairs = a.pairs.offset_begin[k + 1] - a.pairs.offset_begin[k];
      tiles = (pairs + a.tile_rows - 1) / a.tile_rows;
    }
    int64_t total = 0;
    const int64_t begin = before + block_exclusive_sum<kPairPlanThreads>(tiles, total);
    if (k < a.pairs.offsets) a.tile_begin[k] = begin;
    before += total;
  }
  if (thread_index() != 0) return;
  a.tile_begin[a.pairs.offsets] = before;
  *a.tile_count = poisoned ? kPoison : before;
}

PUMICE_KERNEL PUMICE_THREADS(kPairTileThreads) void fill_pair_tiles(
    PUMICE_ARGUMENT(PairTilesArguments) a) {
  wait_for_previous();
  const int32_t tile = block_index();
  if (tile >= a.tile_begin[a.pairs.offsets]) {   // asked for before its block knows that
    if (thread_index() == 0) a.tile_order[tile] = {0, 0, 0, 0};
    return;
  }
  const int32_t offset = last_begin(a.tile_begin, a.pairs.offsets, tile);
  const int64_t first =
      a.pairs.offset_begin[offset] + (tile - a.tile_begin[offset]) * int64_t{a.tile_rows};
  const int64_t left = a.pairs.offset_begin[offset + 1] - first;
  const int32_t pairs = left < a.tile_rows ? static_cast<int32_t>(left) : a.tile_rows;
  for (int32_t p = thread_index(); p < a.tile_rows; p += kPairTileThreads) {
    const int64_t to = int64_t{tile} * a.tile_rows + p;
    const bool there = p < pairs;
    a.in_row[to] = there ? a.pairs.in[first + p] : -1;
    a.out_row[to] = !there       ? -1
                    : a.own_rows ? static_cast<int32_t>(first + p)
                                 : a.pairs.out[first + p];
  }
  if (thread_index() != 0) return;
  const uint32_t blocks = static_cast<uint32_t>(pairs + kBlockRows - 1) / kBlockRows;
  a.entry[tile] = {static_cast<uint16_t>(offset), static_cast<uint16_t>((1u << blocks) - 1)};
  a.tile_order[tile] = {tile, tile, tile + 1, 0};
}

PUMICE_KERNEL PUMICE_THREADS(kPairTileThreads) void index_pairs(PUMICE_ARGUMENT(PairIndexArguments)
                                                                    a) {
  wait_for_previous();
  const int64_t pair = global_thread_index();
  if (pair >= a.pairs.pairs.rows()) return;
  const int32_t offset = last_begin(a.pairs.offset_begin, a.pairs.offsets, pair);
  a.pair_of[int64_t{a.pairs.out[pair]} * a.pairs.offsets + offset] = static_cast<int32_t>(pair);
}

}   // namespace pumice
