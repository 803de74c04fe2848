#include <pumice/kernels/tile_weights.hpp>

#include "kernels/cuda/packed_tiles.hpp"

namespace pumice {

TileWeights::TileWeights() : packed_(std::make_unique<cuda::PackedTiles>()) {}
TileWeights::~TileWeights() = default;
TileWeights::TileWeights(TileWeights&&) noexcept = default;
TileWeights& TileWeights::operator=(TileWeights&&) noexcept = default;

void TileWeights::clear() {
  packed_->clear();
}

}   // namespace pumice
