// Pairs of a map cut into tiles of one offset each, and which pairs an output row has: what
// fetch-on-demand runs on. Counted on the device.
#pragma once

#include <cstdint>

#include <pumice/shared/pair_list_ref.h>
#include <pumice/shared/tile_map.h>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// The sets that the pairs lie between.
struct PairRows {
  RowCountRef in;
  RowCountRef out;
};

struct PairTileOptions {
  std::int32_t tile_rows = 128;   // 64 · m, m up to 16
  bool own_rows = false;   // positions name a row for each pair, by its number, and no output row
};

class PairTiles {
 public:
  /// Two launches. `pairs` outlive them. UserError where there is room for too many pairs.
  PairTiles(jit::KernelRunner& runner, const PairListRef& pairs, const PairRows& rows,
            const PairTileOptions& options);
  const TileMapRef& ref() const { return ref_; }

 private:
  TileMapRef ref_{};
  Buffer<std::int64_t> tile_begin_;   // of each offset, and behind them the number of tiles
  Buffer<TileRun> tile_order_;
  Buffer<TileEntry> entry_;
  Buffer<std::int32_t> in_row_;
  Buffer<std::int32_t> out_row_;
};

/// [out rows, offsets]: the number of the pair, or -1. A fill and a launch.
Buffer<std::int32_t> index_pairs(jit::KernelRunner& runner, const PairListRef& pairs,
                                 std::int64_t out_rows);

}   // namespace pumice::cuda
