// A decomposition for fetch-on-demand: the pairs of a relation cut by output, so that a tile's
// results stay in cache while every offset adds to them.
#pragma once

#include <cstdint>
#include <span>

#include <pumice/core/buffer.hpp>
#include <pumice/formats/relation.hpp>

namespace pumice {

/// Tile t owns output ranks [t · tile_rows, (t + 1) · tile_rows). Its pairs for offset k are
/// [begin[t · offsets + k], begin[t · offsets + k + 1]), ascending in `local_out`.
struct RelationTilesView {
  std::int64_t tile_rows = 0;
  std::int64_t tiles = 0;
  std::int64_t offsets = 0;
  std::int64_t out_rows = 0;
  const std::int64_t* begin = nullptr;       // [tiles · offsets + 1]
  const std::int32_t* in = nullptr;          // [pairs] input row; -1 stands for a row of zeros
  const std::int32_t* local_out = nullptr;   // [pairs] output rank − t · tile_rows
  const std::int32_t* out_order = nullptr;   // [out_rows] rank -> output row; null: equal
  /// [pairs] number of each pair in the relation; null: not asked for.
  const std::int64_t* entry = nullptr;
  /// Whether `local_out` repeats nowhere within a tile and an offset.
  bool unique_rows = true;
};

/// Whether a cut says of each pair where it stands in the relation: weights of edges follow by it.
enum class EntryNumbers : unsigned char { dropped, kept };

class RelationTiles {
 public:
  /// O(pairs). The relation may be a transposed view; it need not outlive the tiles. Where rows
  /// repeat within an offset, their pairs keep the order of the relation.
  RelationTiles(const RelationView& relation, std::int64_t tile_rows,
                EntryNumbers numbers = EntryNumbers::dropped);
  /// Of a kernel map, or a caller's own lists, which are checked.
  RelationTiles(const KernelMapView& map, std::int64_t tile_rows,
                EntryNumbers numbers = EntryNumbers::dropped);
  /// Valid as long as these tiles.
  RelationTilesView view() const&;
  RelationTilesView view() const&& = delete;

 private:
  friend class OutputTable;   // whose tiles hold missing inputs too
  RelationTiles() = default;

  std::int64_t tile_rows_ = 0;
  std::int64_t tiles_ = 0;
  std::int64_t offsets_ = 0;
  std::int64_t out_rows_ = 0;
  Buffer<std::int64_t> begin_;
  Buffer<std::int32_t> in_;
  Buffer<std::int32_t> local_out_;
  Buffer<std::int32_t> out_order_;
  Buffer<std::int64_t> entry_;
  bool unique_rows_ = true;
};

}   // namespace pumice
