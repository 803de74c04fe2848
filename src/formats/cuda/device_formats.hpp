// The door to what operators on a device run on: cut from a relation when first asked for, and kept
// with it. Operators ask here whatever the relation comes from; who makes relations says how each
// is cut (map_formats.hpp for kernel maps).
#pragma once

#include <cstdint>
#include <vector>

#include <pumice/shared/pair_list_ref.h>
#include <pumice/shared/tile_map.h>
#include <pumice/formats/relation.hpp>

#include "formats/cuda/pair_tiles.hpp"

namespace pumice::cuda {

/// How outputs are cut into tiles.
struct TileCut {
  std::int32_t tile_rows = 128;
  std::int32_t splits = 1;
  bool sort_by_mask = true;

  friend bool operator==(const TileCut&, const TileCut&) = default;
};

/// In which order a tile's entries come. Of the transpose of a centred map, tiles in any order cost
/// nothing; ascending ones are for those to whom the first offset is another than the last.
enum class OffsetOrder : unsigned char { any, ascending };

/// Any thread may ask. What is missing is enqueued on the stream of the relation, which nothing
/// here waits for but `wait_for_pair_counts`.
class DeviceFormats {
 public:
  DeviceFormats() = default;
  DeviceFormats(const DeviceFormats&) = delete;
  DeviceFormats& operator=(const DeviceFormats&) = delete;
  virtual ~DeviceFormats() = default;

  /// Tiles of the output rows, or of the input rows of the transposed relation. Only of relations
  /// whose rows are unique.
  virtual const TileMapRef& tiles(bool is_transposed, const TileCut& cut, OffsetOrder order) = 0;
  /// The pairs, offset by offset; of both directions there is one list.
  virtual PairListRef pairs(bool is_transposed) = 0;
  /// The pairs cut into tiles.
  virtual const TileMapRef& pair_tiles(bool is_transposed, const PairTileOptions& options) = 0;
  /// Which pairs each output row has. Only of relations whose rows are unique.
  virtual const std::int32_t* pair_index(bool is_transposed) = 0;
  /// Of outputs, as the device counts them.
  virtual RowCountRef output_rows(bool is_transposed) const = 0;
  /// Where the pairs of each offset begin, on the host: the same in both directions. The first call
  /// waits for the stream of the relation; UserError while that is being captured.
  virtual const std::vector<std::int64_t>& wait_for_pair_counts() = 0;
};

// The same, of a relation on a device in the direction of the view. Tiles and the index of pairs
// are refused where rows are not unique: an output would get one of several products.

const TileMapRef& tiles_of(const RelationView& relation, const TileCut& cut,
                           OffsetOrder order = OffsetOrder::any);
PairListRef pairs_of(const RelationView& relation);
const TileMapRef& pair_tiles_of(const RelationView& relation, const PairTileOptions& options);
const std::int32_t* pair_index_of(const RelationView& relation);
RowCountRef output_rows_of(const RelationView& relation);

}   // namespace pumice::cuda
