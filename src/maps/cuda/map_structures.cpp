// Requests for what is not there yet.
#include "maps/cuda/map_structures.hpp"

#include <algorithm>
#include <array>
#include <iterator>
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

MapStructures& MapStructures::here(StreamView stream) {
  const std::uint64_t recording = older_ != nullptr ? 0 : capture_of(stream);
  if (recording == 0) return *this;
  const std::scoped_lock lock(mutex_);
  for (const auto& those : recorded_) {
    if (those->recording_ == recording) return *those;
  }
  recorded_.push_back(std::unique_ptr<MapStructures>(new MapStructures(*this, recording, window_)));
  return *recorded_.back();
}

const DeviceWindow* MapStructures::window_of(const KernelMap& map) {
  {
    const std::scoped_lock lock(mutex_);
    if (window_ != nullptr) return window_.get();
  }
  if (MapStructures& those = here(map.in()->stream()); &those != this) return those.window_of(map);
  std::shared_ptr<const DeviceWindow> made = DeviceWindow::on(map.in()->stream(), map.window());
  const std::scoped_lock lock(mutex_);
  if (window_ == nullptr) window_ = std::move(made);
  return window_.get();
}

MapRequest MapStructures::request_through(const DeviceWindow* window, const KernelMap& map,
                                          const TilesWanted& wanted,
                                          std::int64_t entry_capacity) const {
  const CoordinateSet& in = wanted.is_transposed ? *map.out() : *map.in();
  const CoordinateSet& out = wanted.is_transposed ? *map.in() : *map.out();
  const bool to_finer = outputs_are_finer_ != wanted.is_transposed;
  return {.in = ref_of(in),
          .out = ref_of(out),
          .window = window,
          .reach = to_finer ? Reach::in_to_out : Reach::out_to_in,
          .tiles = TileOptions{.tile_rows = wanted.cut.tile_rows,
                               .splits = wanted.cut.splits,
                               .sort_by_mask = wanted.cut.sort_by_mask,
                               .entry_capacity = entry_capacity},
          .is_centred = is_centred(map),
          .name = "map of " + to_string(map.window())};
}

MapRequest MapStructures::request(const KernelMap& map, const TilesWanted& wanted,
                                  std::int64_t entry_capacity) {
  return request_through(window_of(map), map, wanted, entry_capacity);
}

MapRequest MapStructures::pair_request(const DeviceWindow* window, const KernelMap& map) const {
  const bool from_inputs = lists_from_inputs(map);
  MapRequest request = request_through(window, map, {.is_transposed = from_inputs});
  request.tiles.reset();
  request.pairs = PairOptions{};
  request.matched = matched_[from_inputs ? 1 : 0];
  return request;
}

MapStructures::Tiles* MapStructures::made_tiles(const TilesWanted& wanted) const {
  const auto found = std::find_if(tiles_.begin(), tiles_.end(),
                                  [&](const auto& made) { return made->wanted == wanted; });
  return found == tiles_.end() ? nullptr : found->get();
}

const TileMapRef& MapStructures::tiles(const KernelMapView& view, const TileCut& cut,
                                       OffsetOrder order) {
  const KernelMap& map = *view.map;
  const bool mirrors = view.is_transposed && order == OffsetOrder::any && is_centred(map);
  const TilesWanted wanted{view.is_transposed && !mirrors, cut};
  const auto find = [&]() -> const TileMapRef* {
    Tiles* made = made_tiles(wanted);
    if (made == nullptr) return nullptr;
    made->asked = true;
    return mirrors ? &made->mirrored : &made->ref;
  };
  {
    const std::scoped_lock lock(mutex_);
    if (const TileMapRef* made = find()) return *made;
  }
  const StreamView stream = map.in()->stream();
  if (MapStructures& those = here(stream); &those != this) return those.tiles(view, cut, order);
  std::array<MapRequest, 1> requests{};
  const DeviceWindow* window = window_of(map);
  {
    const std::scoped_lock lock(mutex_);
    if (const TileMapRef* made = find()) return *made;
    requests[0] = request_through(window, map, wanted);
    const std::shared_ptr<MatchedMap>& matched = matched_[wanted.is_transposed ? 1 : 0];
    if (matched != nullptr && matched->is_ordered_for(cut.splits, cut.sort_by_mask))
      requests[0].matched = matched;
  }
  requests[0].keeps_match = true;
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  keep(map, requests[0], std::move(build_maps(runner, requests).front()));
  const std::scoped_lock lock(mutex_);
  return *find();
}

PairListRef MapStructures::pairs(const KernelMapView& view) {
  const KernelMap& map = *view.map;
  const bool is_identity = view.offsets == 1 && is_centred(map);
  const auto find = [&] {
    pairs_asked_ = true;
    PairListRef result = pairs_;
    if (view.is_transposed) std::swap(result.in, result.out);
    return result;
  };
  {
    const std::scoped_lock lock(mutex_);
    if (pairs_.offset_begin != nullptr) return find();
  }
  const StreamView stream = map.in()->stream();
  if (MapStructures& those = here(stream); &those != this) return those.pairs(view);
  const DeviceWindow* window = is_identity ? nullptr : window_of(map);
  std::array<MapRequest, 1> requests{};
  {
    const std::scoped_lock lock(mutex_);
    if (pairs_.offset_begin != nullptr) return find();
    if (!is_identity) requests[0] = pair_request(window, map);
  }
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  if (is_identity) {
    const CoordinateSetRef set = ref_of(*map.out());
    auto made = std::make_unique<IdentityPairs>(runner, set.rows, set.order);
    const std::scoped_lock lock(mutex_);
    if (identity_ == nullptr) {
      identity_ = std::move(made);
      pairs_ = identity_->ref();
    }
    return find();
  }
  keep(map, requests[0], std::move(build_maps(runner, requests).front()));
  const std::scoped_lock lock(mutex_);
  return find();
}

const TileMapRef& MapStructures::pair_tiles(const KernelMapView& view,
                                            const PairTileOptions& options) {
  const auto find = [&]() -> const TileMapRef* {
    for (const auto& made : pair_tiles_) {
      if (made->is_transposed == view.is_transposed &&
          made->options.tile_rows == options.tile_rows &&
          made->options.own_rows == options.own_rows)
        return &made->tiles.ref();
    }
    return nullptr;
  };
  {
    const std::scoped_lock lock(mutex_);
    if (const TileMapRef* made = find()) return *made;
  }
  const StreamView stream = view.map->in()->stream();
  if (MapStructures& those = here(stream); &those != this) return those.pair_tiles(view, options);
  const PairListRef pairs_of_view = (older_ != nullptr ? *older_ : *this).pairs(view);
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  auto made = std::make_unique<TilesOfPairs>(TilesOfPairs{
      view.is_transposed, options, PairTiles(runner, pairs_of_view, rows_of(view), options)});
  const std::scoped_lock lock(mutex_);
  if (find() == nullptr) pair_tiles_.push_back(std::move(made));
  return *find();
}

const std::int32_t* MapStructures::pair_index(const KernelMapView& view) {
  Buffer<std::int32_t>& index = pair_index_[view.is_transposed ? 1 : 0];
  {
    const std::scoped_lock lock(mutex_);
    if (index.data() != nullptr) return index.data();
  }
  const StreamView stream = view.map->in()->stream();
  if (MapStructures& those = here(stream); &those != this) return those.pair_index(view);
  const PairListRef pairs_of_view = (older_ != nullptr ? *older_ : *this).pairs(view);
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  Buffer<std::int32_t> made = index_pairs(runner, pairs_of_view, rows_of(view).out.capacity);
  const std::scoped_lock lock(mutex_);
  if (index.data() == nullptr) std::swap(index, made);
  return index.data();
}

RowCountRef MapStructures::output_rows(const KernelMapView& view) {
  return rows_of(view).out;
}

const std::vector<std::int64_t>& MapStructures::wait_for_pair_counts(const KernelMapView& view) {
  {
    const std::scoped_lock lock(mutex_);
    if (!pair_begin_.empty()) return pair_begin_;
  }
  const StreamView stream = view.map->in()->stream();
  PUMICE_EXPECTS(!is_capturing(stream),
                 "the numbers of pairs of a kernel map are needed on the host, which cannot wait "
                 "for them while a graph is recorded");
  const PairListRef list = pairs(view);
  std::vector<std::int64_t> begin =
      copy_to_host(list.offset_begin, std::int64_t{list.offsets} + 1, stream);
  const std::scoped_lock lock(mutex_);
  if (pair_begin_.empty()) pair_begin_ = std::move(begin);
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
  Uses result = older_ == nullptr ? Uses{} : older_->uses();
  const std::scoped_lock lock(mutex_);
  result.pairs |= pairs_asked_ && identity_ == nullptr;   // an identity's cost next to nothing
  for (const auto& made : tiles_) {
    if (made->asked) result.tiles.push_back(made->wanted);
  }
  return result;
}

bool MapStructures::has_tiles(const TilesWanted& wanted) {
  if (older_ != nullptr && older_->has_tiles(wanted)) return true;
  const std::scoped_lock lock(mutex_);
  return made_tiles(wanted) != nullptr;
}

bool MapStructures::has_pairs() {
  if (older_ != nullptr && older_->has_pairs()) return true;
  const std::scoped_lock lock(mutex_);
  return pairs_.offset_begin != nullptr;
}

std::vector<MapRequest> MapStructures::missing(const KernelMap& map, const Uses& uses) {
  if (uses.tiles.empty() && !uses.pairs) return {};
  std::vector<TilesWanted> tiles;
  std::copy_if(uses.tiles.begin(), uses.tiles.end(), std::back_inserter(tiles),
               [this](const TilesWanted& wanted) { return !has_tiles(wanted); });
  const bool is_identity = map.view().offsets == 1 && is_centred(map);
  bool lists_pairs = uses.pairs && !is_identity && !has_pairs();
  const DeviceWindow* window = window_of(map);
  const std::scoped_lock lock(mutex_);
  std::vector<MapRequest> requests;
  for (const TilesWanted& wanted : tiles) {
    MapRequest& request = requests.emplace_back(request_through(window, map, wanted));
    request.keeps_match = true;
    const std::shared_ptr<MatchedMap>& matched = matched_[wanted.is_transposed ? 1 : 0];
    if (matched != nullptr && matched->is_ordered_for(wanted.cut.splits, wanted.cut.sort_by_mask))
      request.matched = matched;
    if (lists_pairs && wanted.is_transposed == lists_from_inputs(map)) {
      request.pairs = PairOptions{};
      lists_pairs = false;
    }
  }
  if (lists_pairs) requests.push_back(pair_request(window, map));
  return requests;
}

void MapStructures::keep(const KernelMap& map, const MapRequest& request, DeviceMap made) {
  // What another thread made in the meantime stays, for somebody may be using it; `made` is given
  // back behind the lock then.
  const std::scoped_lock lock(mutex_);
  const bool to_finer = request.reach == Reach::in_to_out;
  const bool is_transposed = to_finer != outputs_are_finer_;
  if (request.keeps_match) matched_[is_transposed ? 1 : 0] = made.matched();
  const bool lists_pairs = request.pairs && pairs_.offset_begin == nullptr;
  if (lists_pairs) {
    pairs_ = made.pairs();
    if (lists_from_inputs(map)) std::swap(pairs_.in, pairs_.out);
  }
  if (!request.tiles) {
    if (lists_pairs) pairs_map_ = std::move(made);
    return;
  }
  const TilesWanted wanted{
      is_transposed,
      {request.tiles->tile_rows, request.tiles->splits, request.tiles->sort_by_mask}};
  // Twice where the pairs came along with tiles that are there: the first ones are found.
  if (made_tiles(wanted) != nullptr && !lists_pairs) return;
  const TileMapRef ref = made.tiles();
  const TileMapRef mirrored = made.mirrored_tiles();
  tiles_.push_back(std::make_unique<Tiles>(Tiles{wanted, std::move(made), ref, mirrored}));
}

}   // namespace pumice::cuda
