// A decomposition for fetch-on-demand: the pairs of a kernel map cut by output, so that a tile's
// results stay in cache while every offset adds to them.
#pragma once

#include <cstdint>
#include <span>

#include <pumice/core/buffer.hpp>
#include <pumice/maps/kernel_map.hpp>

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
};

class RelationTiles {
 public:
  /// O(pairs). The map may be a transposed view; it need not outlive the tiles.
  RelationTiles(const KernelMapView& map, std::int64_t tile_rows);
  /// Valid as long as these tiles.
  RelationTilesView view() const;

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
};

}   // namespace pumice
