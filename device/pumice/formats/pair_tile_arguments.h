// What the kernels that cut lists of pairs into tiles are launched with.
#pragma once

#include <pumice/shared/pair_list_ref.h>
#include <pumice/shared/tile_map.h>

namespace pumice {

inline constexpr int kPairTileThreads = 256;
inline constexpr int kPairPlanThreads = 1024;

/// Tiles of one entry each, those of an offset side by side.
struct PairTilesArguments {
  PairListRef pairs;
  int32_t tile_rows = 0;
  bool own_rows = false;           // a pair is written to a row of its own, by its number, and not
                                   // added to its output row
  int64_t* tile_begin = nullptr;   // [offsets + 1]
  TileRun* tile_order = nullptr;   // [tile_capacity]
  TileEntry* entry = nullptr;      // [tile_capacity]
  int32_t* in_row = nullptr;       // [tile_capacity, tile_rows]
  int32_t* out_row = nullptr;      // [tile_capacity, tile_rows]
  int64_t* tile_count = nullptr;
};

struct PairIndexArguments {
  PairListRef pairs;
  int32_t* pair_of = nullptr;   // [output rows, offsets] filled with -1
};

}   // namespace pumice
