// Looking cells up in a table of blocks, and putting blocks into one.
#pragma once

#include <pumice/platform.h>
#include <pumice/shared/coordinate_set_ref.h>

namespace pumice {

inline constexpr uint32_t kNoSlot = ~uint32_t{0};

/// The slot of a block and what it holds; `slot` is kNoSlot where there is no such block.
struct FoundBlock {
  uint32_t slot;
  uint64_t occupancy;
};

PUMICE_DEVICE FoundBlock find_block(const BlockTableRef& table, uint64_t block_key) {
  for (uint32_t slot = block_hash(block_key) & table.slot_mask;;
       slot = (slot + 1) & table.slot_mask) {
    const BlockSlot found = table.slots[slot];
    if (found.key == block_key) return {slot, found.occupancy};
    if (found.key == kNoBlock) return {kNoSlot, 0};
  }
}

PUMICE_DEVICE uint64_t cell_bit(uint64_t key) {
  return uint64_t{1} << (key & (kBlockCells - 1));
}

/// Rank of the cell with this key, or -1 when it is not occupied.
PUMICE_DEVICE int32_t find_rank(const BlockTableRef& table, uint64_t key) {
  const FoundBlock block = find_block(table, key >> kBlockBits);
  const uint64_t bit = cell_bit(key);
  if ((block.occupancy & bit) == 0) return -1;
  return table.slot_rank[block.slot] + popcount(block.occupancy & (bit - 1));
}

PUMICE_DEVICE int32_t row_of_rank(const int32_t* order, int32_t rank) {
  return order == nullptr || rank < 0 ? rank : order[rank];
}

/// The slot that `block_key` has, or takes now. `is_new` says which. Slots start as kNoBlock, and
/// there are more of them than blocks.
PUMICE_DEVICE uint32_t claim_slot(BlockSlot* slots, uint32_t slot_mask, uint64_t block_key,
                                  bool& is_new) {
  for (uint32_t slot = block_hash(block_key) & slot_mask;; slot = (slot + 1) & slot_mask) {
    const uint64_t there = atomic_compare_swap(&slots[slot].key, kNoBlock, block_key);
    is_new = there == kNoBlock;
    if (is_new || there == block_key) return slot;
  }
}

}   // namespace pumice
