// What the kernels that cut sorted keys into levels (pumice/coords/levels.h) are launched with.
#pragma once

#include <pumice/coords/key_box.h>
#include <pumice/shared/coordinate_set_ref.h>
#include <pumice/shared/status.h>

namespace pumice {

/// What was found wrong with the elements. Starts as zeros.
struct RowTrouble {
  uint32_t rows;   // how many
  uint32_t last;   // the largest of them
};

inline constexpr int kMaxLevels = 8;
inline constexpr int kLevelCounters = 2 * kMaxLevels;   // rows and blocks of each level
inline constexpr int kLevelThreads = 256;
inline constexpr int kLevelItems = 4;
inline constexpr int kBlockBuildThreads = 128;
inline constexpr int kLevelTile = kLevelThreads * kLevelItems;

/// One set to be made: the distinct values of key >> shift. `block_count` and `block_key` are null
/// where only keys are wanted.
struct Level {
  uint64_t* keys = nullptr;        // [row_capacity]
  uint64_t* block_key = nullptr;   // [block_capacity]
  uint64_t* occupancy = nullptr;   // [block_capacity]
  int32_t* base_rank = nullptr;    // [block_capacity]
  BlockSlot* slots = nullptr;      // [slot_mask + 1], all kNoBlock
  int32_t* slot_rank = nullptr;    // [slot_mask + 1]
  int64_t* row_count = nullptr;
  int64_t* block_count = nullptr;
  int64_t row_capacity = 0;
  int64_t block_capacity = 0;
  uint32_t slot_mask = 0;
  int32_t shift = 0;
  int32_t row_site = 0;   // who is named when more rows are needed than there is room for
  int32_t block_site = 0;
};

struct LevelArguments {
  RowCountRef elements{};
  const uint64_t* keys = nullptr;     // [elements], ascending
  const uint32_t* values = nullptr;   // [elements] where each came from; null: its own place
  uint32_t* states = nullptr;         // [tiles of the capacity, kLevelCounters] zeroed
  uint32_t* ticket = nullptr;         // zeroed
  Level level[kMaxLevels];
  int32_t levels = 0;

  // The first level's relation to the elements; null where nobody asks.
  int32_t* order = nullptr;    // [rows] where the first element of a row came from
  int32_t* row_of = nullptr;   // [elements] by where they came from: the row they fell into
  int64_t* begin = nullptr;    // [rows + 1] the elements of row r: [begin[r], begin[r + 1])
  /// Cells outside are left out. For a single level of keys alone: where a block begins cannot be
  /// told before its first cells may be gone.
  KeyBox box{};
  KeyLayout box_layout{};   // of the level's keys

  RowTrouble* outside = nullptr;    // elements that have no key; null: all have
  RowTrouble* repeated = nullptr;   // zeroed; null: elements may repeat
  StatusRecord* status = nullptr;
  int32_t site = 0;   // of the elements
};

}   // namespace pumice
