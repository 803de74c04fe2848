// Sums of counts before each, in one launch: a block a tile, which looks back for the sum of the
// tiles before it.
#pragma once

#include <pumice/grid/exclusive_sum.h>
#include <pumice/grid/scan_arguments.h>
#include <pumice/platform.h>

namespace pumice {

PUMICE_KERNEL PUMICE_THREADS(kScanThreads,
                             kScanBlocks) void scan_counts(PUMICE_ARGUMENT(ScanArguments) a) {
  wait_for_previous();
  const int32_t tile = take_tile(a.ticket);
  const int64_t first = int64_t{tile} * kScanTile + int64_t{thread_index()} * kScanItems;
  uint32_t count[kScanItems];
  uint64_t mine = 0;
  PUMICE_UNROLL
  for (int i = 0; i < kScanItems; ++i) {
    count[i] = first + i < a.size ? a.count[first + i] : 0;
    mine += count[i];
  }
  auto before = static_cast<int64_t>(grid_exclusive_sum<kScanThreads>(a.states, tile, mine).before);
  PUMICE_UNROLL
  for (int i = 0; i < kScanItems; ++i) {
    if (first + i <= a.size) a.before[first + i] = before;
    before += count[i];
  }
}

}   // namespace pumice
