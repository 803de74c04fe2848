// Weight gradients on Hopper: one warpgroup gathers both ends of the pairs, the others multiply
// them transposed, straight from shared memory.
//
//      rows of pairs, 128 bytes swizzled: the layout of an operand whose K runs along the rows
//   ┌ x  pair 0 ┐  ┌ dy pair 0 ┐      warpgroup w: channels 64 w … 64 w + 63 of x
//   │    pair 1 │  │    pair 1 │  →     [64 × tile_out] += xᵀ · dy, 16 pairs an instruction
//   └     …     ┘  └     …     ┘      no transpose, no registers in between
//
// Chunks of one offset are an inner loop of their own: sums that are flushed inside the loop that
// starts products make the assembler wait after each of them (note C7517).
#pragma once

#include <pumice/block/barrier.h>
#include <pumice/skeleton/gradient_sink.h>
#include <pumice/skeleton/pair_gather.h>
#include <pumice/skeleton/stage_ring.h>
#include <pumice/thread/shared_address.h>
#include <pumice/warpgroup/wgmma.h>

namespace pumice {

template <GradientSpec S> using GradientRing = StageRing<S.stages, stage_bytes(S)>;

template <GradientSpec S>
PUMICE_DEVICE void gather_pairs(const GradientArguments& arguments, const OffsetTable& table,
                                GradientRing<S> ring) {
  const GradientTile<S> tile = gradient_tile<S>();
  ChunkWalk walk(table, block_index(), grid_size());
  const int32_t total = walk.left();
  const int32_t warp = warp_shuffle(thread_index() % kWarpgroupThreads / kWarpLanes, 0);
  PairGather<S, 4> gather(arguments, walk, warp, tile.in_tile, tile.out_tile, tile.group);
  PUMICE_ROLLED
  for (int32_t c = 0; c < total; ++c) {
    walk.advance();
    gather.enter(walk);
    ring.wait_empty();
    gather.copy(ring.stage());
    barrier_arrive_after_copies(ring.full());
    ring.advance();
  }
  launch_next();
}

/// Starts the products of a landed stage as one group.
template <GradientSpec S>
PUMICE_DEVICE void multiply_pairs(float (&sums)[S.tile_out / 8][4], uint32_t stage,
                                  int32_t warpgroup) {
  using Input = GradientOperand<S, false>;
  using Grad = GradientOperand<S, true>;
  constexpr int32_t kStep = 16;   // pairs of one instruction, two groups of eight rows
  wgmma_copy_fence();
  Wgmma<S.tile_out>::hold(sums);
  wgmma_fence();
  const uint64_t x = across_k(stage + warpgroup * Input::kSubBytes, Input::kSubBytes);
  const uint64_t dy = across_k(stage + Grad::kStart, Grad::kSubBytes);
  PUMICE_UNROLL
  for (int32_t pair = 0; pair < S.tile_pairs; pair += kStep) {
    Wgmma<S.tile_out>::template add<S.operand, true>(sums, x + pair * 128 / 16,
                                                     dy + pair * 128 / 16);
  }
  wgmma_commit();
}

template <GradientSpec S>
PUMICE_DEVICE void multiply_offsets(const GradientArguments& arguments, const OffsetTable& table,
                                    GradientRing<S> ring, int32_t warpgroup) {
  constexpr int32_t kNone = -1;
  const GradientTile<S> tile = gradient_tile<S>();
  GradientSink<S> sink(arguments, tile.in_tile, tile.out_tile, tile.group);
  ChunkWalk walk(table, block_index(), grid_size());
  const bool releases = lane_index() == 0;   // each warp for itself
  const int32_t warp = warp_shuffle(warp_index() % 4, 0);
  float sums[S.tile_out / 8][4];
  while (!walk.done()) {
    const int32_t offset = walk.offset();
    const int32_t chunks = walk.left_of_offset();
    PUMICE_UNROLL
    for (int32_t j = 0; j < S.tile_out / 8; ++j)
      fill(sums[j], 0.0f);
    int32_t held = kNone;
    PUMICE_ROLLED
    for (int32_t c = 0; c < chunks; ++c) {
      ring.wait_full();
      multiply_pairs<S>(sums, ring.stage(), warpgroup);
      wgmma_wait<1>();
      if (held != kNone && releases) ring.release(held);
      held = ring.index();
      ring.advance();
      walk.advance();
    }
    wgmma_wait<0>();
    Wgmma<S.tile_out>::hold(sums);
    if (releases) ring.release(held);
    sink.begin(offset);
    sink.template put_fragment<S.tile_out>(sums, warpgroup * 64 + warp * 16, 0);
  }
}

template <GradientSpec S> PUMICE_DEVICE void gradient_wgmma(const GradientArguments& arguments) {
  static_assert(is_valid(S) && S.instruction == Instruction::wgmma);
  if (poisoned<S>(arguments)) return;
  unsigned char* const shared = launch_shared<unsigned char>();
  constexpr int32_t kStages = S.stages * stage_bytes(S);
  const OffsetTable table(shared + kStages + 16 * S.stages, arguments.pairs.offsets);
  table.fill(arguments.pairs, S.tile_pairs);
  const GradientRing<S> ring(shared_address(shared), shared_address(shared) + kStages);
  if (thread_index() == 0) ring.init(kWarpgroupThreads, S.in_warps);
  block_sync();

  constexpr int32_t kMultiplying = S.in_warps / 4;
  const int32_t warpgroup = warp_shuffle(thread_index() / kWarpgroupThreads, 0);
  if (warpgroup == kMultiplying) {
    keep_registers<gather_registers(S)>();
    gather_pairs<S>(arguments, table, ring);
  } else {
    take_registers<multiply_registers(S)>();
    multiply_offsets<S>(arguments, table, ring, warpgroup);
  }
}

}   // namespace pumice
