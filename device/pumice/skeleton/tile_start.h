// What a thread block of a tile asks for first, and whether there is a tile for it.
#pragma once

#include <pumice/platform.h>
#include <pumice/shared/tile_arguments.h>
#include <pumice/shared/tile_spec.h>
#include <pumice/skeleton/poison.h>
#include <pumice/thread/read_ahead.h>

namespace pumice {

/// What a thread block asks for first. All reads are under way at once: one after the other they
/// would take as long as a few stages.
struct TileStart {
  TileRun run;
  int64_t out_rows;   // 0 when poisoned
  bool poisoned;      // a count is above its capacity
  bool there;         // this block has a tile
};

template <TileSpec S> PUMICE_DEVICE TileStart start_tile(const TileArguments& arguments) {
  const TileMapRef& map = arguments.map;
  const int64_t in_rows = count_of(map.in_rows), out_rows = count_of(map.out_rows);
  const bool poisoned = exceeds(in_rows, map.in_rows) | exceeds(out_rows, map.out_rows);
  if constexpr (S.gather == Gather::identity) {
    return {{block_index(), 0, 1, 0},
            poisoned ? 0 : out_rows,
            poisoned,
            int64_t{block_index()} * S.tile_rows < out_rows};
  } else {
    const TileRun run = load_ahead(map.tile_order + block_index());   // empty past the last tile
    const int64_t tiles = count_of(map.tiles);
    const bool any_poisoned = poisoned | exceeds(tiles, map.tiles);
    return {run, any_poisoned ? 0 : out_rows, any_poisoned, block_index() < tiles};
  }
}

/// Whether this block has nothing to multiply. It then has waited, and written what poison asks
/// for.
template <TileSpec S>
PUMICE_DEVICE bool is_done(const TileArguments& arguments, const TileStart& start) {
  if (!start.poisoned && start.there) return false;
  wait_for_previous();
  if (start.poisoned) write_poison<S>(arguments);
  return true;
}

}   // namespace pumice
