// Requests for what is not there yet.
#include "maps/cuda/map_structures.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>

#include "coords/cuda/coordinate_set.hpp"

namespace pumice::cuda {
namespace {

/// Rows of the sets that a view lies between.
PairRows rows_of(const KernelMapView& view) {
  const CoordinateSet& in = view.is_transposed ? *view.map->out() : *view.map->in();
  const CoordinateSet& out = view.is_transposed ? *view.map->in() : *view.map->out();
  return {.in = ref_of(in).rows, .out = ref_of(out).rows};
}

/// Pairs are listed from the side of fewer rows, for there is room for all its rows times the
/// offsets.
bool lists_from_inputs(const KernelMap& map) {
  return map.in()->rows().capacity() < map.out()->rows().capacity();
}

/// Whether the transpose of a map is the map itself with offsets numbered from the last on.
bool is_centred(const KernelMap& map) {
  return map.in() == map.out() && map.view().has_identity_offset;
}

}   // namespace

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
          .is_centred = is_centred(map),
          .name = "map of " + to_string(map.window())};
}

const TileMapRef& MapStructures::tiles(const KernelMapView& view, std::int32_t tile_rows,
                                       std::int32_t splits, OffsetOrder order) {
  const std::scoped_lock lock(mutex_);
  const bool mirrors = view.is_transposed && order == OffsetOrder::any && is_centred(*view.map);
  const TilesWanted wanted{view.is_transposed && !mirrors, tile_rows, splits};
  const auto of_view = [&](const Tiles& made) -> const TileMapRef& {
    return mirrors ? made.mirrored : made.ref;
  };
  for (const auto& made : tiles_) {
    if (!(made->wanted == wanted)) continue;
    made->asked = true;
    return of_view(*made);
  }
  const StreamView stream = view.map->in()->stream();
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  if (window_ == nullptr) window_ = DeviceWindow::on(stream, view.map->window());
  std::array<MapRequest, 1> requests{request(*view.map, wanted)};
  std::shared_ptr<MatchedMap>& matched = matched_[wanted.is_transposed ? 1 : 0];
  if (matched != nullptr && matched->splits == splits) requests[0].matched = matched;
  requests[0].keeps_match = true;
  DeviceMap map = std::move(build_maps(runner, requests).front());
  matched = map.matched();
  const TileMapRef ref = map.tiles();
  const TileMapRef mirrored = map.mirrored_tiles();
  tiles_.push_back(std::make_unique<Tiles>(Tiles{wanted, std::move(map), ref, mirrored, true}));
  return of_view(*tiles_.back());
}

PairListRef MapStructures::pairs(const KernelMapView& view) {
  const std::scoped_lock lock(mutex_);
  return find_pairs(view);
}

void MapStructures::match_pairs(jit::KernelRunner& runner, const KernelMap& map) {
  if (window_ == nullptr) window_ = DeviceWindow::on(runner.stream(), map.window());
  const bool from_inputs = lists_from_inputs(map);
  std::array<MapRequest, 1> requests{request(map, {.is_transposed = from_inputs})};
  requests[0].tiles.reset();
  requests[0].pairs = PairOptions{};
  requests[0].matched = matched_[from_inputs ? 1 : 0];
  pairs_map_ = std::move(build_maps(runner, requests).front());
  list_pairs(map, pairs_map_.pairs());
}

void MapStructures::list_pairs(const KernelMap& map, const PairListRef& pairs) {
  pairs_ = pairs;
  if (lists_from_inputs(map)) std::swap(pairs_.in, pairs_.out);
}

PairListRef MapStructures::find_pairs(const KernelMapView& view) {
  pairs_asked_ = true;
  if (pairs_.offset_begin == nullptr) {
    const KernelMap& map = *view.map;
    const StreamView stream = map.in()->stream();
    jit::DeviceRunner runner(stream, default_allocator(stream.device));
    if (view.offsets == 1 && is_centred(map)) {
      const CoordinateSetRef set = ref_of(*map.out());
      pairs_ = identity_.emplace(runner, set.rows, set.order).ref();
    } else {
      match_pairs(runner, map);
    }
  }
  PairListRef result = pairs_;
  if (view.is_transposed) std::swap(result.in, result.out);
  return result;
}

const TileMapRef& MapStructures::pair_tiles(const KernelMapView& view,
                                            const PairTileOptions& options) {
  const std::scoped_lock lock(mutex_);
  for (const auto& made : pair_tiles_) {
    if (made->is_transposed == view.is_transposed && made->options.tile_rows == options.tile_rows &&
        made->options.own_rows == options.own_rows)
      return made->tiles.ref();
  }
  const PairListRef pairs = find_pairs(view);
  const StreamView stream = view.map->in()->stream();
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  pair_tiles_.push_back(std::make_unique<TilesOfPairs>(
      TilesOfPairs{view.is_transposed, options, PairTiles(runner, pairs, rows_of(view), options)}));
  return pair_tiles_.back()->tiles.ref();
}

const std::int32_t* MapStructures::pair_index(const KernelMapView& view) {
  const std::scoped_lock lock(mutex_);
  Buffer<std::int32_t>& index = pair_index_[view.is_transposed ? 1 : 0];
  if (index.data() == nullptr) {
    const PairListRef pairs = find_pairs(view);
    const StreamView stream = view.map->in()->stream();
    jit::DeviceRunner runner(stream, default_allocator(stream.device));
    index = index_pairs(runner, pairs, rows_of(view).out.capacity);
  }
  return index.data();
}

RowCountRef MapStructures::output_rows(const KernelMapView& view) {
  return rows_of(view).out;
}

const std::vector<std::int64_t>& MapStructures::wait_for_pair_counts(const KernelMapView& view) {
  const std::scoped_lock lock(mutex_);
  if (!pair_begin_.empty()) return pair_begin_;
  const StreamView stream = view.map->in()->stream();
  PUMICE_EXPECTS(!is_capturing(stream),
                 "the numbers of pairs of a kernel map are needed on the host, which cannot wait "
                 "for them while a graph is recorded");
  const PairListRef pairs = find_pairs(view);
  pair_begin_ = copy_to_host(pairs.offset_begin, std::int64_t{pairs.offsets} + 1, stream);
  return pair_begin_;
}

std::vector<MapStructures::Asked> MapStructures::asked() {
  const std::scoped_lock lock(mutex_);
  std::vector<Asked> result;
  for (const auto& made : tiles_) {
    if (made->asked) result.push_back({made->wanted, made->map.entries()});
  }
  return result;
}

MapStructures::Uses MapStructures::uses() {
  const std::scoped_lock lock(mutex_);
  Uses result{{}, pairs_asked_ && !identity_};   // those of an identity cost next to nothing
  for (const auto& made : tiles_) {
    if (made->asked) result.tiles.push_back(made->wanted);
  }
  return result;
}

const MapStructures::Tiles* MapStructures::made_tiles(const TilesWanted& wanted) const {
  const auto found = std::find_if(tiles_.begin(), tiles_.end(),
                                  [&](const auto& made) { return made->wanted == wanted; });
  return found == tiles_.end() ? nullptr : found->get();
}

std::vector<MapRequest> MapStructures::missing(const KernelMap& map, const Uses& uses) {
  const std::scoped_lock lock(mutex_);
  const StreamView stream = map.in()->stream();
  std::vector<MapRequest> requests;
  const auto find_window = [&] {
    if (window_ == nullptr) window_ = DeviceWindow::on(stream, map.window());
  };
  bool lists_pairs = uses.pairs && pairs_.offset_begin == nullptr;
  std::array<bool, 2> searches{};   // a direction, in one of these requests
  for (const TilesWanted& wanted : uses.tiles) {
    const std::size_t direction = wanted.is_transposed ? 1 : 0;
    if (made_tiles(wanted) != nullptr || searches[direction]) continue;
    find_window();
    requests.push_back(request(map, wanted));
    requests.back().keeps_match = true;
    const std::shared_ptr<MatchedMap>& matched = matched_[direction];
    if (matched != nullptr && matched->splits == wanted.splits)
      requests.back().matched = matched;
    else
      searches[direction] = true;
    if (lists_pairs && wanted.is_transposed == lists_from_inputs(map)) {
      requests.back().pairs = PairOptions{};
      lists_pairs = false;
    }
  }
  if (lists_pairs) {
    find_window();
    const bool from_inputs = lists_from_inputs(map);
    requests.push_back(request(map, {.is_transposed = from_inputs}));
    requests.back().tiles.reset();
    requests.back().pairs = PairOptions{};
    requests.back().matched = matched_[from_inputs ? 1 : 0];
  }
  return requests;
}

void MapStructures::keep(const KernelMap& map, const MapRequest& request, DeviceMap made) {
  const std::scoped_lock lock(mutex_);
  const bool to_finer = request.reach == Reach::in_to_out;
  const bool is_transposed = to_finer != outputs_are_finer_;
  if (request.keeps_match) matched_[is_transposed ? 1 : 0] = made.matched();
  if (request.pairs) list_pairs(map, made.pairs());
  if (!request.tiles) {
    pairs_map_ = std::move(made);
    return;
  }
  const TilesWanted wanted{is_transposed, request.tiles->tile_rows, request.tiles->splits};
  const TileMapRef ref = made.tiles();
  const TileMapRef mirrored = made.mirrored_tiles();
  tiles_.push_back(std::make_unique<Tiles>(Tiles{wanted, std::move(made), ref, mirrored}));
}

void MapStructures::keep(const TilesWanted& wanted, DeviceMap tiles) {
  const std::scoped_lock lock(mutex_);
  const TileMapRef ref = tiles.tiles();
  const TileMapRef mirrored = tiles.mirrored_tiles();
  tiles_.push_back(std::make_unique<Tiles>(Tiles{wanted, std::move(tiles), ref, mirrored}));
}

}   // namespace pumice::cuda
