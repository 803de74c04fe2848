// A decomposition for implicit GEMM: one row of input rows for each output, -1 where no input meets
// it. Sorting by the bit mask of the offsets that are there puts outputs with the same neighbours
// together, so that a tile skips the offsets none of its outputs has.
#pragma once

#include <cstdint>

#include <pumice/core/buffer.hpp>
#include <pumice/formats/relation_tiles.hpp>

namespace pumice {

class OutputTable {
 public:
  /// Any number of offsets: masks take (offsets + 63) / 64 words. `splits` cuts the offsets into
  /// that many ranges of equal length (within one), each sorted by its own part of the mask.
  /// Unsorted positions are output ranks.
  /// UserError for a relation in which rows repeat within an offset: a column holds one input.
  OutputTable(const RelationView& relation, bool sort_by_mask, int splits);
  /// Of a kernel map, or a caller's own lists, which are checked.
  OutputTable(const KernelMapView& map, bool sort_by_mask, int splits);

  std::int64_t offsets() const { return offsets_; }
  std::int64_t out_rows() const { return out_rows_; }
  int splits() const { return splits_; }
  /// The offsets of split s are [first_offset(s), first_offset(s + 1)).
  std::int64_t first_offset(int split) const { return split * offsets_ / splits_; }
  /// [out_rows, offsets]: input row or -1. The columns of a split's offsets are in that split's
  /// order of positions.
  const std::int32_t* table() const { return table_.data(); }
  /// position -> output row, for a split.
  const std::int32_t* order(int split) const { return order_.data() + split * out_rows_; }
  /// Share of table entries that are real pairs once offsets absent from a whole tile of
  /// `tile_rows` positions are skipped: 1 means no wasted multiply.
  double density(std::int64_t tile_rows) const;
  /// The table of one split as tiles in which every output takes part in every offset of its tile's
  /// mask, with -1 for the missing ones: what TileMMA runs on.
  RelationTiles tiles(int split, std::int64_t tile_rows) const;

 private:
  /// Whether any output of tile `tile` has offset `k`.
  bool any_in_tile(std::int64_t tile, std::int64_t tile_rows, std::int64_t k) const;

  std::int64_t offsets_ = 0;
  std::int64_t out_rows_ = 0;
  std::int64_t pairs_ = 0;
  int splits_ = 1;
  Buffer<std::int32_t> table_;
  Buffer<std::int32_t> order_;   // [splits, out_rows]
};

}   // namespace pumice
