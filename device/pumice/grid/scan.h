// Sums of counts before each, in one launch: a block a tile, which looks back for the sum of the
// tiles before it.
#pragma once

#include <pumice/block/scan.h>
#include <pumice/grid/look_back.h>
#include <pumice/grid/scan_arguments.h>
#include <pumice/platform.h>

namespace pumice {

PUMICE_KERNEL PUMICE_THREADS(kScanThreads,
                             kScanBlocks) void scan_counts(PUMICE_ARGUMENT(ScanArguments) a) {
  const int32_t tile = take_tile(a.ticket);
  const int64_t first = int64_t{tile} * kScanTile + int64_t{thread_index()} * kScanItems;
  uint32_t count[kScanItems];
  uint64_t mine = 0;
  PUMICE_UNROLL
  for (int i = 0; i < kScanItems; ++i) {
    count[i] = first + i < a.size ? a.count[first + i] : 0;
    mine += count[i];
  }
  uint64_t of_tile = 0;
  const uint64_t before_mine = block_exclusive_sum<kScanThreads>(mine, of_tile);
  PUMICE_BLOCK_SHARED(uint64_t, before_tile);
  if (thread_index() == 0) {
    say_part(a.states, 1, tile, of_tile);
    before_tile = look_back(a.states, 1, tile);
    say_sum(a.states, 1, tile, before_tile + of_tile);
  }
  block_sync();
  auto before = static_cast<int64_t>(before_tile + before_mine);
  PUMICE_UNROLL
  for (int i = 0; i < kScanItems; ++i) {
    if (first + i <= a.size) a.before[first + i] = before;
    before += count[i];
  }
}

}   // namespace pumice
