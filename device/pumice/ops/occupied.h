// The occupied cells of a dense array, as coordinates in the order of the array.
//
//    cells      0 . 0 0 | . . 0 0      mark_occupied    a bit a cell, and how many a block has
//    begin      0         3            sum_occupied     one block: sites before each block
//    sites      0 2 3     6 7          write_occupied   a site goes behind those before it
#pragma once

#include <pumice/block/scan.h>
#include <pumice/ops/occupied_arguments.h>

namespace pumice {

/// Whether a channel of `cell` is not zero; a negative zero is one.
template <class Bits> PUMICE_DEVICE bool has_value(const OccupiedArguments& a, int64_t cell) {
  const int64_t item = cell / a.volume;
  const Bits* at = static_cast<const Bits*>(a.dense) + item * (a.channels - 1) * a.volume + cell;
  for (int32_t c = 0; c < a.channels; ++c, at += a.volume) {
    if (static_cast<Bits>(*at << 1) != 0) return true;
  }
  return false;
}

PUMICE_DEVICE bool is_occupied(const OccupiedArguments& a, int64_t cell) {
  if (cell >= a.cells) return false;
  if (a.mask != nullptr) return a.mask[cell] != 0;
  switch (a.element_bytes) {
    case 8: return has_value<uint64_t>(a, cell);
    case 4: return has_value<uint32_t>(a, cell);
    default: return has_value<uint16_t>(a, cell);
  }
}

/// A thread a cell, as in write_occupied.
PUMICE_KERNEL PUMICE_THREADS(kRowThreads) void mark_occupied(PUMICE_ARGUMENT(OccupiedArguments) a) {
  wait_for_previous();
  const int64_t cell = global_thread_index();
  const bool is = is_occupied(a, cell);
  const uint32_t word = warp_ballot(is);
  if (lane_index() == 0 && cell < a.cells) a.occupied[cell / kWarpThreads] = word;
  const int32_t sites = block_sum<kRowThreads>(is ? 1 : 0);
  if (thread_index() == 0) a.begin[block_index()] = sites;
}

PUMICE_KERNEL PUMICE_THREADS(kOccupiedSumThreads) void sum_occupied(
    PUMICE_ARGUMENT(OccupiedArguments) a) {
  wait_for_previous();
  const int64_t blocks = (a.cells + kRowThreads - 1) / kRowThreads;
  int64_t before = 0;
  for (int64_t first = 0; first < blocks; first += kOccupiedSumThreads) {
    const int64_t block = first + thread_index();
    int64_t total = 0;
    const int64_t begin = before + block_exclusive_sum<kOccupiedSumThreads>(
                                       block < blocks ? a.begin[block] : int64_t{0}, total);
    if (block < blocks) a.begin[block] = begin;
    before += total;
  }
  if (thread_index() == 0) *a.count = before;
}

PUMICE_KERNEL PUMICE_THREADS(kRowThreads) void write_occupied(PUMICE_ARGUMENT(OccupiedArguments)
                                                                  a) {
  wait_for_previous();
  const int64_t cell = global_thread_index();
  if (cell >= a.cells) return;
  const int64_t word = cell / kWarpThreads;
  const uint32_t mine = a.occupied[word];
  if ((mine >> lane_index() & 1) == 0) return;
  int64_t row = a.begin[block_index()] + popcount(mine & lanes_below());
  for (int before = 1; before <= warp_index(); ++before)
    row += popcount(a.occupied[word - before]);
  int32_t* const site = a.coordinates + row * (1 + a.grid.dimension);
  int64_t rest = cell;
  for (int axis = a.grid.dimension - 1; axis >= 0; --axis) {
    const int64_t upper = rest / a.grid.shape[axis];
    site[axis + 1] = static_cast<int32_t>(rest - upper * a.grid.shape[axis]) + a.grid.low[axis];
    rest = upper;
  }
  site[0] = static_cast<int32_t>(rest);
}

}   // namespace pumice
