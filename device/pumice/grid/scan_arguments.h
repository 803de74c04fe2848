// What `scan_counts` (grid/scan.h) is launched with.
#pragma once

#include <pumice/shared/types.h>

namespace pumice {

inline constexpr int kScanThreads = 256;
inline constexpr int kScanItems = 4;
/// Of a multiprocessor at least, which are 64 registers a thread: left to itself the compiler takes
/// 40 for more blocks, and spills.
inline constexpr int kScanBlocks = 4;
inline constexpr int kScanTile = kScanThreads * kScanItems;

struct ScanArguments {
  const uint32_t* count = nullptr;   // [size]
  int64_t size = 0;
  int64_t* before = nullptr;    // [size + 1]: how many there are before each, and of all
  uint64_t* states = nullptr;   // [tiles] zeroed; grid/look_back.h
  uint32_t* ticket = nullptr;   // zeroed
};

}   // namespace pumice
