// The sum over all threads of a launch before each, a block a tile: over the threads of the block,
// then, by looking back, over the tiles before it.
#pragma once

#include <pumice/block/scan.h>
#include <pumice/grid/look_back.h>
#include <pumice/platform.h>

namespace pumice {

struct GridSum {
  uint64_t before;   // over the threads before this one
  uint64_t end;      // up to the end of the tile
};

/// Every thread of a block of `kThreads` calls it. `states`: a word a tile, zeroed. (balance_rows
/// does the same by itself: with this function it spilled 16 bytes on sm_120.)
template <int kThreads>
PUMICE_DEVICE GridSum grid_exclusive_sum(uint64_t* states, int32_t tile, uint64_t mine) {
  uint64_t of_tile = 0;
  const uint64_t before_mine = block_exclusive_sum<kThreads>(mine, of_tile);
  PUMICE_BLOCK_SHARED(uint64_t, before_tile);
  if (thread_index() == 0) {
    say_part(states, 1, tile, of_tile);
    before_tile = look_back(states, 1, tile);
    say_sum(states, 1, tile, before_tile + of_tile);
  }
  block_sync();
  return {before_tile + before_mine, before_tile + of_tile};
}

}   // namespace pumice
