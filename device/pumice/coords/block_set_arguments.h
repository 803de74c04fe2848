// What the kernels that turn marked blocks into a set (pumice/coords/block_set.h) are launched
// with.
#pragma once

#include <pumice/coords/level_arguments.h>

namespace pumice {

inline constexpr int kBlockSetThreads = 256;
inline constexpr int kBlockSetTile = 64;   // blocks

/// The blocks that a kernel claims and marks cells in, in no order. While cells are being marked
/// the bits of an occupancy are complemented, so that a table of nothing but ones is an empty one.
struct MarkedBlocks {
  BlockSlot* slots = nullptr;    // [slot_mask + 1], all ones
  uint64_t* keys = nullptr;      // [capacity] to be sorted
  uint32_t* slot_of = nullptr;   // [capacity] the values that go with them
  int64_t* count = nullptr;      // 0; may pass the capacity
  int64_t capacity = 0;
  uint32_t slot_mask = 0;
};

struct BlockSetArguments {
  RowCountRef marked{};             // the sorted ones
  const uint64_t* keys = nullptr;   // ascending
  const uint32_t* slot_of = nullptr;
  uint64_t* states = nullptr;   // [tiles of the capacity] zeroed; grid/look_back.h
  uint32_t* ticket = nullptr;   // zeroed
  Level set{};                  // whose slots are those of the marked blocks
  RowCountRef source{};         // what the marking depended on
  StatusRecord* status = nullptr;
};

}   // namespace pumice
