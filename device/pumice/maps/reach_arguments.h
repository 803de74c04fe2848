// What `mark_reached` (pumice/maps/reach.h) is launched with.
#pragma once

#include <pumice/coords/block_set_arguments.h>
#include <pumice/coords/key_box.h>
#include <pumice/maps/cell_relation.h>
#include <pumice/shared/row_count.h>

namespace pumice {

inline constexpr int kReachThreads = 256;
inline constexpr int kReachRowsPerLane = 1;   // rows that a lane takes with its offset

/// In the relation the cells that reach out are the outputs, those reached the inputs.
struct ReachArguments {
  CellRelation relation{};
  RowCountRef rows{};
  const uint64_t* keys = nullptr;   // [rows]
  KeyLayout layout{};
  KeyLayout reached{};   // of the cells that are reached
  KeyBox box{};          // those outside are left out
  MarkedBlocks marked{};
};

}   // namespace pumice
