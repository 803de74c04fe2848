// What the kernels that search maps are launched with: up to 16 maps at once, because a launch
// costs as much as the map of a small level.
#pragma once

#include <pumice/maps/cell_relation.h>
#include <pumice/shared/coordinate_set_ref.h>

namespace pumice {

inline constexpr int kMaxTasks = 16;
inline constexpr int kMaxTaskSets = 16;

inline constexpr int kMatchThreads = 256;
inline constexpr int kMatchWarps = kMatchThreads / 32;
inline constexpr int kBlocksPerWarp = 4;       // of cells that a warp takes, matching by blocks
inline constexpr int kCellsAtOnce = 2;         // of a block, that a lane looks at
inline constexpr int kRowsPerLane = 1;         // that a lane takes, matching by rows
inline constexpr int kParityRowsPerLane = 1;   // and matching by parities

/// How the inputs of a map are found; see maps/match.h.
enum class Matching : int32_t { blocks, children, parities, rows };

PUMICE_SHARED constexpr Matching matching_of(const WindowRef& window) {
  if (window.of_child != nullptr) return Matching::children;
  if (window.cell_move != nullptr) return Matching::blocks;
  if (window.of_parity != nullptr) return Matching::parities;
  return Matching::rows;
}

/// A map between two sets, and what a search for it finds.
struct MatchTask {
  CellRelation relation{};
  int32_t in_set = 0;
  int32_t out_set = 0;
  int32_t words = 0;   // 32 offsets each

  uint32_t* mask = nullptr;           // [out rows, words] bit k: rank has offset k
  uint32_t* offset_count = nullptr;   // [volume] zeroed
  OffsetStep* step = nullptr;         // [volume]
  /// [out rows, volume] for each rank and each of its offsets the input row; what it has not, is
  /// not written. Null where masks take several words: inputs are then looked up again.
  int32_t* found = nullptr;
};

struct MatchBatch {
  using Task = MatchTask;
  CoordinateSetRef set[kMaxTaskSets];
  MatchTask task[kMaxTasks];
  int32_t first_block[kMaxTasks] = {};   // blocks of a launch from here on are the task's
  int32_t tasks = 0;
};

}   // namespace pumice
