// Requests for what is not there yet.
#include "maps/cuda/map_structures.hpp"

#include <array>
#include <utility>

#include "coords/cuda/coordinate_set.hpp"

namespace pumice::cuda {

MapRequest MapStructures::request(const KernelMap& map, const TilesWanted& wanted,
                                  std::int64_t entry_capacity) const {
  const CoordinateSet& in = wanted.is_transposed ? *map.out() : *map.in();
  const CoordinateSet& out = wanted.is_transposed ? *map.in() : *map.out();
  const bool to_finer = outputs_are_finer_ != wanted.is_transposed;
  return {.in = ref_of(in),
          .out = ref_of(out),
          .window = window_.get(),
          .reach = to_finer ? Reach::in_to_out : Reach::out_to_in,
          .tiles = TileOptions{.tile_rows = wanted.tile_rows,
                               .splits = wanted.splits,
                               .entry_capacity = entry_capacity},
          .name = "map of " + to_string(map.window())};
}

const TileMapRef& MapStructures::tiles(const KernelMapView& view, std::int32_t tile_rows,
                                       std::int32_t splits) {
  const std::scoped_lock lock(mutex_);
  const TilesWanted wanted{view.is_transposed, tile_rows, splits};
  for (const auto& made : tiles_) {
    if (!(made->wanted == wanted)) continue;
    made->asked = true;
    return made->ref;
  }
  const StreamView stream = view.map->in()->stream();
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  if (window_ == nullptr) window_ = std::make_shared<DeviceWindow>(runner, view.map->window());
  const std::array<MapRequest, 1> requests{request(*view.map, wanted)};
  DeviceMap map = std::move(build_maps(runner, requests).front());
  const TileMapRef ref = map.tiles();
  tiles_.push_back(std::make_unique<Tiles>(Tiles{wanted, std::move(map), ref, true}));
  return tiles_.back()->ref;
}

PairListRef MapStructures::pairs(const KernelMapView& view) {
  const std::scoped_lock lock(mutex_);
  if (pairs_.offset_begin == nullptr) {
    const KernelMap& map = *view.map;
    const StreamView stream = map.in()->stream();
    jit::DeviceRunner runner(stream, default_allocator(stream.device));
    if (window_ == nullptr) window_ = std::make_shared<DeviceWindow>(runner, map.window());
    // From the side of fewer rows, for there is room for all its rows times the offsets.
    const bool from_inputs = map.in()->rows().capacity() < map.out()->rows().capacity();
    std::array<MapRequest, 1> requests{request(map, {.is_transposed = from_inputs})};
    requests[0].tiles.reset();
    requests[0].pairs = PairOptions{};
    pairs_map_ = std::move(build_maps(runner, requests).front());
    pairs_ = pairs_map_.pairs();
    if (from_inputs) std::swap(pairs_.in, pairs_.out);
  }
  PairListRef result = pairs_;
  if (view.is_transposed) std::swap(result.in, result.out);
  return result;
}

std::vector<MapStructures::Asked> MapStructures::asked() {
  const std::scoped_lock lock(mutex_);
  std::vector<Asked> result;
  for (const auto& made : tiles_) {
    if (made->asked) result.push_back({made->wanted, made->map.entries()});
  }
  return result;
}

void MapStructures::keep(const TilesWanted& wanted, DeviceMap tiles) {
  const std::scoped_lock lock(mutex_);
  const TileMapRef ref = tiles.tiles();
  tiles_.push_back(std::make_unique<Tiles>(Tiles{wanted, std::move(tiles), ref}));
}

}   // namespace pumice::cuda
