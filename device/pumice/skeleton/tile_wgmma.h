// TileMMA for Hopper: one warpgroup gathers, the others multiply straight from shared memory.
//
//     gathering warpgroup              ring of stages               multiplying warpgroups
//   ┌───────────────────────┐      ┌───┬───┬───┬───┬───┐      ┌──────────────────────────────┐
//   │ rows:    cp.async ────┼────► │ A │ A │ A │   │   │ ───► │ 0: blocks of rows 0, 1 …     │
//   │ weights: bulk copy ───┼────► │ B │ B │ B │   │   │ ───► │ 1: the blocks after those    │
//   └───────────────────────┘      └───┴───┴───┴───┴───┘      └──────────────────────────────┘
//        waits for `empty`          full: 128 + 1 arrivals       waits for `full`, skips stages
//                                   and the weights' bytes       that none of its rows needs
//
// One thread block a tile, longest tile first. Measured on an H200 and left out: clusters that
// share weights by multicast (30–130 % slower: the tiles' offsets differ) and a persistent loop
// (5–30 % slower).
#pragma once

#include <pumice/shared/tile_limits.h>
#include <pumice/skeleton/epilogue.h>
#include <pumice/skeleton/row_gather.h>
#include <pumice/skeleton/stage_ring.h>
#include <pumice/skeleton/weight_blocks.h>
#include <pumice/thread/shared_address.h>
#include <pumice/warpgroup/wgmma.h>

namespace pumice {

template <TileSpec S> using TileRing = StageRing<S.stages, stage_bytes(S)>;

/// What the gathering warpgroup does for a tile.
template <TileSpec S>
PUMICE_DEVICE void gather_stages(const TileArguments& arguments, const TileStart& start,
                                 TileRing<S> ring, int32_t column_tile, int32_t group) {
  TileWalk<S> walk(arguments, start.run);
  const int32_t total = walk.stages();
  const WeightBlocks<S> weights(arguments, column_tile, group);
  const int32_t thread = thread_index() % kWarpgroupThreads;
  RowGather<S, 4> gather(arguments, walk, start, warp_shuffle(thread / kWarpLanes, 0), group);
  wait_for_previous();
  PUMICE_ROLLED
  for (int32_t s = 0; s < total; ++s) {
    ring.wait_empty();
    if (thread == 0) {
      barrier_arrive_expecting(ring.full(), weight_stage_bytes(S));
      copy_bulk(ring.stage() + input_stage_bytes(S), weights.of(walk), weight_stage_bytes(S),
                ring.full());
    }
    gather.copy(walk, ring.stage());
    barrier_arrive_after_copies(ring.full());
    ring.advance();
    if (walk.advance()) gather.enter(walk);
  }
  launch_next();
}

/// Sums of one multiplying warpgroup.
template <TileSpec S> class WarpgroupTile {
  using Layout = StageLayout<S>;
  static constexpr int32_t kBlocks = warp_rows(S) * 4 / kBlockRows;
  static constexpr int32_t kStepBytes = 32;   // of channels in one instruction

 public:
  PUMICE_DEVICE explicit WarpgroupTile(int32_t warpgroup) : first_block_(warpgroup * kBlocks) {
    PUMICE_UNROLL
    for (int32_t b = 0; b < kBlocks; ++b) {
      PUMICE_UNROLL
      for (int32_t j = 0; j < S.tile_columns / 8; ++j)
        fill(sums_[b][j], 0.0f);
    }
  }

  PUMICE_DEVICE bool takes_part(const TileWalk<S>& walk) const {
    return walk.has_blocks(first_block_, kBlocks);
  }

  /// Starts the products of a landed stage as one group. Each choice of blocks is a sequence of its
  /// own: products under a condition of their own are serialised (note C7520).
  PUMICE_DEVICE void multiply_stage(const TileWalk<S>& walk, uint32_t stage) {
    if constexpr (kBlocks == 2) {
      if (!walk.has_blocks(first_block_, 1)) return multiply_blocks<1, 1>(stage);
      if (!walk.has_blocks(first_block_ + 1, 1)) return multiply_blocks<0, 1>(stage);
    }
    multiply_blocks<0, kBlocks>(stage);
  }

  PUMICE_DEVICE void hold() {
    PUMICE_UNROLL
    for (int32_t block = 0; block < kBlocks; ++block)
      Wgmma<S.tile_columns>::hold(sums_[block]);
  }

  /// `warp` counts all multiplying warps.
  PUMICE_DEVICE void store(TileEpilogue<S>& epilogue, int32_t warp) const {
    Staging<S> staging(warp);
    PUMICE_UNROLL
    for (int32_t block = 0; block < kBlocks; ++block)
      staging.put(block, sums_[block], lane_index());
    epilogue.store(staging, 0);
  }

 private:
  template <int32_t kFirst, int32_t kCount> PUMICE_DEVICE void multiply_blocks(uint32_t stage) {
    const uint32_t input = stage + first_block_ * kBlockRows * Layout::kSwizzle;
    const uint32_t weight = stage + Layout::kInputBytes;
    wgmma_copy_fence();
    hold();
    wgmma_fence();
    PUMICE_UNROLL
    for (int32_t sub = 0; sub < Layout::kSubTiles; ++sub) {
      const uint64_t b = along_k<Layout::kSwizzle>(weight + sub * Layout::kWeightSubBytes);
      PUMICE_UNROLL
      for (int32_t block = kFirst; block < kFirst + kCount; ++block) {
        const uint64_t a = along_k<Layout::kSwizzle>(input + sub * Layout::kInputSubBytes +
                                                     block * kBlockRows * Layout::kSwizzle);
        PUMICE_UNROLL
        for (int32_t step = 0; step < Layout::kSwizzle / kStepBytes; ++step) {
          Wgmma<S.tile_columns>::template add<S.operand>(sums_[block], a + step * (kStepBytes / 16),
                                                         b + step * (kStepBytes / 16));
        }
      }
    }
    wgmma_commit();
  }

  int32_t first_block_;
  float sums_[kBlocks][S.tile_columns / 8][4];
};

/// What a multiplying warpgroup does for a tile. A stage is given back one stage later, when its
/// products are certain to be done; before a stage is skipped that debt is paid, or gathering and
/// multiplying warpgroup would wait for each other once a whole ring is skipped.
template <TileSpec S>
PUMICE_DEVICE void multiply_stages(const TileArguments& arguments, const TileRun& run,
                                   TileRing<S> ring, WarpgroupTile<S>& tile) {
  constexpr int32_t kNone = -1;
  TileWalk<S> walk(arguments, run);
  const int32_t total = walk.stages();
  const bool releases = lane_index() == 0;   // each warp for itself
  int32_t held = kNone;
  wait_for_previous();
  PUMICE_ROLLED
  for (int32_t s = 0; s < total; ++s) {
    ring.wait_full();
    if (tile.takes_part(walk)) {
      tile.multiply_stage(walk, ring.stage());
      wgmma_wait<1>();
      if (held != kNone && releases) ring.release(held);
      held = ring.index();
    } else {
      if (held != kNone) {
        wgmma_wait<0>();
        if (releases) ring.release(held);
        held = kNone;
      }
      if (releases) ring.release(ring.index());
    }
    ring.advance();
    walk.advance();
  }
  wgmma_wait<0>();
  tile.hold();
}

template <TileSpec S> PUMICE_DEVICE void tile_wgmma(const TileArguments& arguments) {
  static_assert(is_valid(S) && S.instruction == Instruction::wgmma);
  const TileStart start = start_tile<S>(arguments);
  if (is_done<S>(arguments, start)) return;

  const int32_t column_tile = block_index_y() % column_tiles(S);
  const int32_t group = block_index_y() / column_tiles(S);
  const uint32_t shared = shared_address(launch_shared<unsigned char>());
  const TileRing<S> ring(shared, shared + shared_bytes(S) - 16 * S.stages);
  if (thread_index() == 0) ring.init(kWarpgroupThreads + 1, S.row_warps);
  block_sync();

  constexpr int32_t kMultiplying = S.row_warps / 4;
  const int32_t warpgroup = warp_shuffle(thread_index() / kWarpgroupThreads, 0);
  if (warpgroup == kMultiplying) {
    keep_registers<gather_registers(S)>();
    gather_stages<S>(arguments, start, ring, column_tile, group);
    return;
  }
  take_registers<multiply_registers(S)>();
  const int32_t warp = warp_shuffle(warp_index(), 0);
  TileEpilogue<S> epilogue(arguments, start, column_tile, group,
                           warpgroup * (S.tile_rows / kMultiplying) + warp % 4 * kGroupRows,
                           kBlockRows);
  WarpgroupTile<S> tile(warpgroup);
  multiply_stages<S>(arguments, start.run, ring, tile);

  // The stages become the staging memory once every warpgroup is done with them.
  warps_sync<1, kMultiplying * kWarpgroupThreads>();
  tile.store(epilogue, warp);
}

}   // namespace pumice
