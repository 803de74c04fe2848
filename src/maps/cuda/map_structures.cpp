// Requests for what is not there yet.
#include "maps/cuda/map_structures.hpp"

#include <array>
#include <utility>

#include "coords/cuda/coordinate_set.hpp"

namespace pumice::cuda {

const TileMapRef& MapStructures::tiles(const KernelMapView& view, std::int32_t tile_rows,
                                       std::int32_t splits) {
  const std::scoped_lock lock(mutex_);
  for (const auto& made : tiles_) {
    if (made->is_transposed == view.is_transposed && made->tile_rows == tile_rows &&
        made->splits == splits)
      return made->ref;
  }
  const CoordinateSet& in = view.is_transposed ? *view.map->out() : *view.map->in();
  const CoordinateSet& out = view.is_transposed ? *view.map->in() : *view.map->out();
  jit::DeviceRunner runner(in.stream(), default_allocator(in.device()));
  if (!window_) window_.emplace(runner, view.map->window());
  const bool to_finer = outputs_are_finer_ != view.is_transposed;
  const std::array<MapRequest, 1> request{
      MapRequest{.in = ref_of(in),
                 .out = ref_of(out),
                 .window = &*window_,
                 .reach = to_finer ? Reach::in_to_out : Reach::out_to_in,
                 .tiles = TileOptions{.tile_rows = tile_rows, .splits = splits},
                 .name = "map of " + to_string(view.map->window())}};
  DeviceMap map = std::move(build_maps(runner, request).front());
  const TileMapRef ref = map.tiles();
  tiles_.push_back(
      std::make_unique<Tiles>(Tiles{view.is_transposed, tile_rows, splits, std::move(map), ref}));
  return tiles_.back()->ref;
}

}   // namespace pumice::cuda
