// Where the packed weights of a stage are.
#pragma once

#include <pumice/skeleton/tile_walk.h>

namespace pumice {

/// The blocks of weights of one column tile and one group.
template <TileSpec S> class WeightBlocks {
 public:
  PUMICE_DEVICE WeightBlocks(const TileArguments& arguments, int32_t column_tile, int32_t group)
      : weight_(static_cast<const char*>(arguments.weight) +
                int64_t{group * column_tiles(S) + column_tile} * arguments.map.offsets *
                    (depth_chunks(S) * weight_stage_bytes(S))),
        shortcut_(static_cast<const char*>(arguments.shortcut_weight) +
                  int64_t{column_tile} * (shortcut_chunks(S) * weight_stage_bytes(S))) {}

  /// The block for the walk's stage.
  PUMICE_DEVICE const char* of(const TileWalk<S>& walk) const {
    if (walk.in_shortcut()) return shortcut_ + walk.chunk() * weight_stage_bytes(S);
    const int32_t block = walk.offset() * depth_chunks(S) + walk.chunk();
    return weight_ + int64_t{block} * weight_stage_bytes(S);
  }

 private:
  const char* weight_;
  const char* shortcut_;
};

}   // namespace pumice
