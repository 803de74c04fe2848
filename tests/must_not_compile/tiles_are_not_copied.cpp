// Tiles of a map are buffers.
// fails with: deleted .*RelationTiles
#include <pumice/formats/relation_tiles.hpp>

pumice::RelationTiles pass_on(pumice::RelationTiles& tiles) {
#ifdef PUMICE_MISUSE
  return tiles;
#else
  return std::move(tiles);
#endif
}
