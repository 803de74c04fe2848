// The view of tiles is pointers into them.
// fails with: deleted .*view
#include <pumice/formats/output_table.hpp>

std::int64_t tiles_of(const pumice::OutputTable& table) {
#ifdef PUMICE_MISUSE
  const pumice::RelationTilesView view = table.tiles(0, 512).view();
#else
  const pumice::RelationTiles tiles = table.tiles(0, 512);
  const pumice::RelationTilesView view = tiles.view();
#endif
  return view.begin[view.tiles];
}
