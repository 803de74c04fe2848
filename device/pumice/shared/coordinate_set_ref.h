// A coordinate set as kernels see it: keys by rank, blocks of 64 cells, and a table that finds
// them.
//
//   keys       by rank, ascending:   … │ 7·64+3 │ 7·64+9 │ 7·64+60 │ 9·64+0 │ …
//   blocks     in the same order:    … │  block 7, base rank r      │ block 9, base rank r + 3 │ …
//                                         occupancy: bits 3, 9, 60
//   slots      open addressing:      key and occupancy of a block in one 16-byte load, so that
//                                    asking whether a cell is occupied is one memory transaction
//   rank of a cell = slot_rank[slot] + popcount(occupancy below the cell);  row = order[rank]
#pragma once

#include <pumice/shared/key_layout.h>
#include <pumice/shared/row_count.h>

namespace pumice {

/// The key of a free slot. Keys have 63 bits, so no block has it.
inline constexpr uint64_t kNoBlock = ~uint64_t{0};

struct alignas(16) BlockSlot {
  uint64_t key;         // key >> kBlockBits, or kNoBlock
  uint64_t occupancy;   // bit = local cell
};

/// The table of a set's blocks. Slots are looked through from `block_hash(key) & slot_mask` on, up
/// to the first free one; at most half of them are in use.
struct BlockTableRef {
  const BlockSlot* slots = nullptr;     // [slot_mask + 1]
  const int32_t* slot_rank = nullptr;   // [slot_mask + 1] rank of the block's first cell
  uint32_t slot_mask = 0;
};

struct CoordinateSetRef {
  KeyLayout layout{};
  RowCountRef rows{};
  RowCountRef blocks{};
  const uint64_t* keys = nullptr;        // [rows], by rank
  const int32_t* order = nullptr;        // [rows], rank -> row; null when they are equal
  const uint64_t* block_key = nullptr;   // [blocks], ascending
  const uint64_t* occupancy = nullptr;   // [blocks]
  const int32_t* base_rank = nullptr;    // [blocks]
  BlockTableRef table{};
};

}   // namespace pumice
