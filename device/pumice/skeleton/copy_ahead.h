// The pipeline of kernels in which every warp both copies and multiplies.
//
//    global memory                shared memory                     registers
//                            ┌ stage s+3: copies start ┐
//    rows of the entry ────► │ stage s+2 …  cp.async   │        row_warps × column_warps warps,
//    block of weights  ────► │ stage s+1               │   ┌─► each with its rows × columns of
//    sums;
//                            └ stage s: landed ────────┼───┘   a warp skips stages of entries that
//                                                              none of its rows has
//
// One barrier a stage: after it, stage s has landed for everybody and stage s − 1 is free.
#pragma once

#include <pumice/shared/tile_limits.h>
#include <pumice/skeleton/epilogue.h>
#include <pumice/skeleton/row_gather.h>
#include <pumice/skeleton/weight_blocks.h>
#include <pumice/thread/shared_address.h>

namespace pumice {

/// All threads copy a block of weights to shared address `to`.
template <TileSpec S> PUMICE_DEVICE void copy_weights(const char* block, uint32_t to) {
  constexpr int32_t kChunks = weight_stage_bytes(S) / kChunkBytes;
  PUMICE_UNROLL
  for (int32_t i = 0; i < divide_up(kChunks, threads(S)); ++i) {
    const int32_t chunk = i * threads(S) + thread_index();
    if (kChunks % threads(S) == 0 || chunk < kChunks)
      copy_async<kChunkBytes>(to + static_cast<uint32_t>(chunk * kChunkBytes),
                              block + chunk * kChunkBytes);
  }
}

/// A tile from the first copy to the last store. WarpTile<S> holds the sums of one warp:
/// takes_part(walk), multiply_stage(shared memory of a landed stage), store(epilogue, warp).
template <TileSpec S, template <TileSpec> class WarpTile>
PUMICE_DEVICE void copy_ahead(const TileArguments& arguments) {
  const TileStart start = start_tile<S>(arguments);
  if (is_done<S>(arguments, start)) return;
  const TileRun& run = start.run;

  const int32_t column_tile = block_index_y() % column_tiles(S);
  const int32_t group = block_index_y() / column_tiles(S);
  const int32_t warp = warp_shuffle(warp_index(), 0);
  unsigned char* const shared = launch_shared<unsigned char>();
  const auto stage_start = [](int32_t stage) { return stage % S.stages * stage_bytes(S); };

  TileWalk<S> copies(arguments, run);
  const int32_t total = copies.stages();
  RowGather<S, multiplying_warps(S)> gather(arguments, copies, start, warp, group);
  const WeightBlocks<S> weights(arguments, column_tile, group);
  TileWalk<S> walk(arguments, run);
  WarpTile<S> sums(warp, lane_index());
  TileEpilogue<S> epilogue(arguments, start, column_tile, group, warp % S.row_warps * warp_rows(S),
                           kGroupRows);
  wait_for_previous();
  constexpr int32_t kAhead = S.stages - 1;
  PUMICE_ROLLED
  for (int32_t s = 0; s < total + kAhead; ++s) {   // copies stage s, multiplies stage s − kAhead
    if (s >= kAhead) {
      copy_wait<S.stages - 2>();
      block_sync();
    }
    if (s < total) {
      const uint32_t stage = shared_address(shared) + stage_start(s);
      gather.copy(copies, stage);
      copy_weights<S>(weights.of(copies), stage + input_stage_bytes(S));
      if (copies.advance()) gather.enter(copies);
    }
    copy_commit();
    if (s >= kAhead) {
      if (sums.takes_part(walk)) sums.multiply_stage(shared + stage_start(s - kAhead));
      walk.advance();
    }
  }

  launch_next();
  copy_wait<0>();
  block_sync();   // the stages become the epilogue's staging memory
  sums.store(epilogue, warp);
}

}   // namespace pumice
