#include "formats/cuda/device_formats.hpp"

#include <pumice/core/error.hpp>

namespace pumice::cuda {
namespace {

DeviceFormats& formats_of(const RelationView& relation) {
  PUMICE_ENSURES(relation.formats != nullptr, "a relation on ", to_string(relation.device),
                 " that nothing is cut of");
  return *relation.formats;
}

DeviceFormats& formats_of_unique_rows(const RelationView& relation, const char* format) {
  PUMICE_EXPECTS(relation.unique_rows, format,
                 " takes one product of each output row and offset, and rows of this relation "
                 "repeat; choose a dataflow that adds pair by pair, such as gather_gemm_scatter");
  return formats_of(relation);
}

}   // namespace

const TileMapRef& tiles_of(const RelationView& relation, const TileCut& cut, OffsetOrder order) {
  return formats_of_unique_rows(relation, "a table of outputs")
      .tiles(relation.is_transposed, cut, order);
}

PairListRef pairs_of(const RelationView& relation) {
  return formats_of(relation).pairs(relation.is_transposed);
}

const TileMapRef& pair_tiles_of(const RelationView& relation, const PairTileOptions& options) {
  return formats_of(relation).pair_tiles(relation.is_transposed, options);
}

const std::int32_t* pair_index_of(const RelationView& relation) {
  return formats_of_unique_rows(relation, "an index of pairs").pair_index(relation.is_transposed);
}

RowCountRef output_rows_of(const RelationView& relation) {
  return formats_of(relation).output_rows(relation.is_transposed);
}

}   // namespace pumice::cuda
