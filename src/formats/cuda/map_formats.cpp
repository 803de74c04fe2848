// Requests for what is not there yet.
#include "formats/cuda/map_formats.hpp"

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

const CoordinateSet& input_of(const KernelMap& map, bool is_transposed) {
  return is_transposed ? *map.out() : *map.in();
}

const CoordinateSet& output_of(const KernelMap& map, bool is_transposed) {
  return is_transposed ? *map.in() : *map.out();
}

/// Pairs are listed from the coarser side, which has fewer rows in most cases, and is known before
/// rows are counted. It is the order in which gradients of weights add them up.
bool lists_from_inputs(const KernelMap& map) {
  return map.outputs_are_finer();
}

/// Whether the transpose of a map is the map itself with offsets numbered from the last on.
bool is_centred(const KernelMap& map) {
  return map.in() == map.out() && map.view().has_identity_offset;
}

}   // namespace

MapFormats& MapFormats::of(const KernelMap& map) {
  return static_cast<MapFormats&>(map.kept(
      [&]() -> std::unique_ptr<KeptWithMap> { return std::make_unique<MapFormats>(map); }));
}

MapFormats& MapFormats::here(StreamView stream) {
  const std::uint64_t recording = older_ != nullptr ? 0 : capture_of(stream);
  if (recording == 0) return *this;
  const std::scoped_lock lock(mutex_);
  for (const auto& those : recorded_) {
    if (those->recording_ == recording) return *those;
  }
  recorded_.push_back(std::unique_ptr<MapFormats>(new MapFormats(*this, recording, window_)));
  return *recorded_.back();
}

const DeviceWindow* MapFormats::window() {
  {
    const std::scoped_lock lock(mutex_);
    if (window_ != nullptr) return window_.get();
  }
  const StreamView stream = map_.in()->stream();
  if (MapFormats& those = here(stream); &those != this) return those.window();
  keep_window(DeviceWindow::on(stream, map_.window()));
  const std::scoped_lock lock(mutex_);
  return window_.get();
}

void MapFormats::keep_window(std::shared_ptr<const DeviceWindow> window) {
  const std::scoped_lock lock(mutex_);
  if (window_ == nullptr) window_ = std::move(window);
}

void MapFormats::note_in(std::shared_ptr<CutNotes> notes) {
  const std::scoped_lock lock(mutex_);
  notes_ = std::move(notes);
}

CutRequest MapFormats::request_through(const DeviceWindow* window, const TilesWanted& wanted,
                                       std::int64_t entry_capacity) const {
  const bool to_finer = map_.outputs_are_finer() != wanted.is_transposed;
  return {.map = {.in = ref_of(input_of(map_, wanted.is_transposed)),
                  .out = ref_of(output_of(map_, wanted.is_transposed)),
                  .window = window,
                  .reach = to_finer ? Reach::in_to_out : Reach::out_to_in,
                  .name = window == nullptr ? "map" : window->map_name()},
          .tiles = TileOptions{.tile_rows = wanted.cut.tile_rows,
                               .splits = wanted.cut.splits,
                               .sort_by_mask = wanted.cut.sort_by_mask,
                               .entry_capacity = entry_capacity},
          .is_centred = is_centred(map_)};
}

CutRequest MapFormats::request(const TilesWanted& wanted, std::int64_t entry_capacity) {
  return request_through(window(), wanted, entry_capacity);
}

CutRequest MapFormats::pair_request(const DeviceWindow* window) const {
  const bool from_inputs = lists_from_inputs(map_);
  CutRequest request = request_through(window, {.is_transposed = from_inputs});
  request.tiles.reset();
  request.pairs = PairOptions{};
  request.earlier = ordered_[from_inputs ? 1 : 0];
  return request;
}

void MapFormats::add_pairs(std::vector<CutRequest>& requests, const DeviceWindow* window,
                           const PairOptions& options) const {
  // Of one direction and not of the other: then one search does for both.
  const auto of_this_side = [&](const CutRequest& request) {
    return is_transposed(request) == lists_from_inputs(map_);
  };
  auto takes = std::ranges::find_if(requests, of_this_side);
  if (takes == requests.end()) takes = requests.insert(takes, pair_request(window));
  takes->pairs = options;
}

void MapFormats::list_pairs(std::vector<CutRequest>& requests, std::int64_t pair_capacity) {
  const DeviceWindow* const on_device = window();
  const std::scoped_lock lock(mutex_);
  add_pairs(requests, on_device, {.pair_capacity = pair_capacity});
}

bool MapFormats::is_transposed(const CutRequest& request) const {
  return (request.map.reach == Reach::in_to_out) != map_.outputs_are_finer();
}

MapFormats::Tiles* MapFormats::made_tiles(const TilesWanted& wanted) const {
  const auto found = std::find_if(tiles_.begin(), tiles_.end(),
                                  [&](const auto& made) { return made->wanted == wanted; });
  return found == tiles_.end() ? nullptr : found->get();
}

const TileMapRef& MapFormats::tiles(bool is_transposed, const TileCut& cut, OffsetOrder order) {
  const TilesWanted wanted = order == OffsetOrder::any ? tiles_wanted(is_transposed, cut)
                                                       : TilesWanted{is_transposed, cut};
  const bool mirrors = is_transposed && !wanted.is_transposed;
  const auto find = [&]() -> const TileMapRef* {
    Tiles* made = made_tiles(wanted);
    if (made == nullptr) return nullptr;
    if (!made->asked && notes_ != nullptr) notes_->ask_for_tiles(wanted);
    made->asked = true;
    return mirrors ? &made->mirrored : &made->ref;
  };
  {
    const std::scoped_lock lock(mutex_);
    if (const TileMapRef* made = find()) return *made;
  }
  const StreamView stream = map_.in()->stream();
  if (MapFormats& those = here(stream); &those != this)
    return those.tiles(is_transposed, cut, order);
  std::array<CutRequest, 1> requests{};
  const DeviceWindow* const on_device = window();
  {
    const std::scoped_lock lock(mutex_);
    if (const TileMapRef* made = find()) return *made;
    requests[0] = request_through(on_device, wanted);
    requests[0].earlier = ordered_[wanted.is_transposed ? 1 : 0];
  }
  requests[0].keeps_order = true;
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  keep(requests[0], std::move(cut_maps(runner, requests).front()));
  const std::scoped_lock lock(mutex_);
  return *find();
}

PairListRef MapFormats::pairs(bool is_transposed) {
  const bool is_identity = map_.window().volume() == 1 && is_centred(map_);
  const auto find = [&] {
    if (!asked_for_pairs_ && notes_ != nullptr && !is_identity) notes_->ask_for_pairs();
    asked_for_pairs_ = true;
    PairListRef result = pairs_;
    if (is_transposed) std::swap(result.in, result.out);
    return result;
  };
  {
    const std::scoped_lock lock(mutex_);
    if (pairs_.offset_begin != nullptr) return find();
  }
  const StreamView stream = map_.in()->stream();
  if (MapFormats& those = here(stream); &those != this) return those.pairs(is_transposed);
  const DeviceWindow* const on_device = is_identity ? nullptr : window();
  std::array<CutRequest, 1> requests{};
  {
    const std::scoped_lock lock(mutex_);
    if (pairs_.offset_begin != nullptr) return find();
    if (!is_identity) requests[0] = pair_request(on_device);
  }
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  if (is_identity) {
    const CoordinateSetRef set = ref_of(*map_.out());
    auto made = std::make_unique<IdentityPairs>(runner, set.rows, set.order);
    const std::scoped_lock lock(mutex_);
    if (identity_ == nullptr) {
      identity_ = std::move(made);
      pairs_ = identity_->ref();
    }
    return find();
  }
  keep(requests[0], std::move(cut_maps(runner, requests).front()));
  const std::scoped_lock lock(mutex_);
  return find();
}

const TileMapRef& MapFormats::pair_tiles(bool is_transposed, const PairTileOptions& options) {
  const auto find = [&]() -> const TileMapRef* {
    for (const auto& made : pair_tiles_) {
      if (made->is_transposed == is_transposed && made->options.tile_rows == options.tile_rows &&
          made->options.own_rows == options.own_rows)
        return &made->tiles.ref();
    }
    return nullptr;
  };
  {
    const std::scoped_lock lock(mutex_);
    if (const TileMapRef* made = find()) return *made;
  }
  const StreamView stream = map_.in()->stream();
  if (MapFormats& those = here(stream); &those != this)
    return those.pair_tiles(is_transposed, options);
  const PairListRef list = (older_ != nullptr ? *older_ : *this).pairs(is_transposed);
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  const PairRows rows{.in = ref_of(input_of(map_, is_transposed)).rows,
                      .out = output_rows(is_transposed)};
  auto made = std::make_unique<TilesOfPairs>(
      TilesOfPairs{is_transposed, options, PairTiles(runner, list, rows, options)});
  const std::scoped_lock lock(mutex_);
  if (find() == nullptr) pair_tiles_.push_back(std::move(made));
  return *find();
}

const std::int32_t* MapFormats::pair_index(bool is_transposed) {
  Buffer<std::int32_t>& index = pair_index_[is_transposed ? 1 : 0];
  {
    const std::scoped_lock lock(mutex_);
    if (index.data() != nullptr) return index.data();
  }
  const StreamView stream = map_.in()->stream();
  if (MapFormats& those = here(stream); &those != this) return those.pair_index(is_transposed);
  const PairListRef list = (older_ != nullptr ? *older_ : *this).pairs(is_transposed);
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  Buffer<std::int32_t> made = index_pairs(runner, list, output_rows(is_transposed).capacity);
  const std::scoped_lock lock(mutex_);
  if (index.data() == nullptr) std::swap(index, made);
  return index.data();
}

RowCountRef MapFormats::output_rows(bool is_transposed) const {
  return ref_of(output_of(map_, is_transposed)).rows;
}

const std::vector<std::int64_t>& MapFormats::wait_for_pair_counts() {
  {
    const std::scoped_lock lock(mutex_);
    if (!pair_begin_.empty()) return pair_begin_;
  }
  const StreamView stream = map_.in()->stream();
  PUMICE_EXPECTS(!is_capturing(stream),
                 "the numbers of pairs of a kernel map are needed on the host, which cannot wait "
                 "for them while a graph is recorded");
  const PairListRef list = pairs(false);
  std::vector<std::int64_t> begin =
      copy_to_host(list.offset_begin, std::int64_t{list.offsets} + 1, stream);
  const std::scoped_lock lock(mutex_);
  if (pair_begin_.empty()) pair_begin_ = std::move(begin);
  return pair_begin_;
}

std::vector<MapFormats::Asked> MapFormats::asked() {
  const std::scoped_lock lock(mutex_);
  std::vector<Asked> result;
  for (const auto& made : tiles_) {
    if (made->asked) result.push_back({made->wanted, made->map.entries()});
  }
  return result;
}

std::optional<RowCountRef> MapFormats::asked_pairs() {
  const std::scoped_lock lock(mutex_);
  if (!asked_for_pairs_ || identity_ != nullptr) return {};
  return pairs_.pairs;
}

TilesWanted MapFormats::tiles_wanted(bool is_transposed, const TileCut& cut) const {
  return {is_transposed && !is_centred(map_), cut};
}

bool MapFormats::has_tiles(const TilesWanted& wanted) {
  if (older_ != nullptr && older_->has_tiles(wanted)) return true;
  const std::scoped_lock lock(mutex_);
  return made_tiles(wanted) != nullptr;
}

bool MapFormats::has_pairs() {
  if (older_ != nullptr && older_->has_pairs()) return true;
  const std::scoped_lock lock(mutex_);
  return pairs_.offset_begin != nullptr;
}

std::vector<CutRequest> MapFormats::missing(const Wanted& all) {
  std::vector<TilesWanted> tiles;
  std::copy_if(all.tiles.begin(), all.tiles.end(), std::back_inserter(tiles),
               [this](const TilesWanted& wanted) { return !has_tiles(wanted); });
  const bool is_identity = map_.window().volume() == 1 && is_centred(map_);
  const bool lists_pairs = all.pairs && !is_identity && !has_pairs();
  if (tiles.empty() && !lists_pairs) return {};
  const DeviceWindow* const on_device = window();
  const std::scoped_lock lock(mutex_);
  std::vector<CutRequest> requests;
  for (const TilesWanted& wanted : tiles) {
    CutRequest& request = requests.emplace_back(request_through(on_device, wanted));
    request.keeps_order = true;
    request.earlier = ordered_[wanted.is_transposed ? 1 : 0];
  }
  if (lists_pairs) add_pairs(requests, on_device, {});
  return requests;
}

void MapFormats::keep(const CutRequest& request, CutMap made) {
  // What another thread made in the meantime stays, for somebody may be using it; `made` is given
  // back behind the lock then.
  const std::scoped_lock lock(mutex_);
  const bool is_transposed = this->is_transposed(request);
  if (request.keeps_order) ordered_[is_transposed ? 1 : 0] = made.ordered();
  const bool lists_pairs = request.pairs && pairs_.offset_begin == nullptr;
  if (lists_pairs) {
    pairs_ = made.pairs();
    if (lists_from_inputs(map_)) std::swap(pairs_.in, pairs_.out);
  }
  if (!request.tiles) {
    if (lists_pairs) pairs_cut_ = std::move(made);
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
