// The structure a convolution runs on when every output row is written by one tile: which rows meet
// through which kernel offset, cut into tiles of 64·m positions.
//
//      tile t        entries: kernel offsets that at least one of its rows has
//   position p    ┌ e0 ┬ e1 ┬ e2 ┐
//      0  row 17  │  4 │ -1 │  9 │  ┐ block 0: bit 0 of `blocks`; entry e1 has none of its rows,
//      …          │  … │ -1 │  … │  │ so its bit is clear and nobody reads or multiplies them
//     63  row 90  │ -1 │ -1 │ 77 │  ┘
//     64  row  3  │ 21 │ 30 │ -1 │  ┐ block 1: bit 1
//      …          │  … │  … │  … │  ┘
//                   in_row[e · tile_rows + p], -1 where the row has no neighbour
#pragma once

#include <pumice/shared/row_count.h>
#include <pumice/shared/types.h>

namespace pumice {

/// Rows of a block, the unit in which work is skipped: what one warpgroup multiplies at once.
inline constexpr int32_t kBlockRows = 64;
/// More blocks than this do not fit into the bits of an entry.
inline constexpr int32_t kMaxTileBlocks = 16;

/// More kernel offsets than this have no number in an entry.
inline constexpr int64_t kMostTileOffsets = 65536;

/// One kernel offset that a tile needs.
struct alignas(4) TileEntry {
  uint16_t offset;   // which slice of the weights
  uint16_t blocks;   // bit b: block b of the tile has a row with this offset
};
static_assert(sizeof(TileEntry) == 4);

/// A tile in the order of execution. All that a thread block asks for before its first gather comes
/// with one 16-byte load.
struct alignas(16) TileRun {
  int32_t tile;
  int32_t entry_begin;   // its entries are [entry_begin, entry_end)
  int32_t entry_end;
  int32_t split;   // which share of the kernel offsets it belongs to; 0 when they are not split
};
static_assert(sizeof(TileRun) == 16);

/// Any kernel volume up to 65,536. When the offsets are split, the tiles of all splits stand in one
/// list; each split has its own positions, in which every output row occurs, and the results of
/// splits are added in fp32.
struct TileMapRef {
  /// [capacity of tiles], most entries first: the longest starts first. Zeros past the last tile.
  const TileRun* tile_order = nullptr;
  /// [entries], a tile's in ascending order of offset; in descending order where the tiles are
  /// those of a centred map, of which this is the transpose.
  const TileEntry* entry = nullptr;
  const int32_t* in_row = nullptr;    // [entries · tile_rows], 16-byte aligned
  const int32_t* out_row = nullptr;   // [tiles · tile_rows], -1 past the last row
  RowCountRef tiles;
  RowCountRef in_rows;
  RowCountRef out_rows;
  int32_t tile_rows = 0;
  int32_t offsets = 0;   // kernel volume: slices of the weights
};

}   // namespace pumice
