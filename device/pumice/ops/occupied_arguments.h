// What the kernels that find the occupied cells of a dense array are launched with.
#pragma once

#include <pumice/ops/row_arguments.h>

namespace pumice {

inline constexpr int kOccupiedSumThreads = 1024;

/// Cells in the order of the array: batch, then axes, the last fastest.
struct OccupiedArguments {
  const void* dense = nullptr;     // [batch, channels, volume] elements of `element_bytes`
  const uint8_t* mask = nullptr;   // [cells] not zero where a site is; null: any channel is not 0
  int64_t cells = 0;
  int64_t volume = 0;   // cells of a batch item
  int32_t channels = 0;
  int32_t element_bytes = 4;
  DensePlacement grid{};            // `low`, `shape` and `dimension`
  uint32_t* occupied = nullptr;     // [cells / 32] a bit a cell
  int64_t* begin = nullptr;         // [blocks of kRowThreads cells] sites before each
  int64_t* count = nullptr;         // all sites
  int32_t* coordinates = nullptr;   // [sites, 1 + dimension]
};

}   // namespace pumice
