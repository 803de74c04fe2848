// Marking cells as bits of blocks that are found or claimed in a table; see coords/block_set.h.
#pragma once

#include <pumice/coords/block_set_arguments.h>
#include <pumice/coords/block_table.h>

namespace pumice {

/// The slot that `block_key` has or takes now; kNoSlot when all are taken.
PUMICE_DEVICE uint32_t claim_marked(const MarkedBlocks& marked, uint64_t block_key, bool& is_new) {
  uint32_t slot = block_hash(block_key) & marked.slot_mask;
  for (uint32_t tries = 0; tries <= marked.slot_mask; ++tries) {
    uint64_t there = marked.slots[slot].key;
    if (there == kNoBlock) {
      there = atomic_compare_swap(&marked.slots[slot].key, kNoBlock, block_key);
      is_new = there == kNoBlock;
      if (is_new) return slot;
    }
    is_new = false;
    if (there == block_key) return slot;
    slot = (slot + 1) & marked.slot_mask;
  }
  return kNoSlot;
}

/// Marks one cell. Where there is no room for its block, the count passes the capacity: by how
/// much is then not exact, for the same block may be counted again.
PUMICE_DEVICE void mark_cell(const MarkedBlocks& marked, uint64_t key) {
  const uint64_t block_key = key >> kBlockBits;
  bool is_new = false;
  const uint32_t slot = claim_marked(marked, block_key, is_new);
  if (slot == kNoSlot || is_new) {
    const int64_t at = atomic_add(marked.count, int64_t{1});
    if (slot == kNoSlot) return;
    if (at < marked.capacity) {
      marked.keys[at] = block_key;
      marked.slot_of[at] = slot;
    }
  }
  const uint64_t bit = cell_bit(key);
  if ((marked.slots[slot].occupancy & bit) != 0) atomic_and(&marked.slots[slot].occupancy, ~bit);
}

}   // namespace pumice
