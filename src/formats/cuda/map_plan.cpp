// Learning what a pass made, and making it again.
#include "formats/cuda/map_plan.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include <pumice/core/copy.hpp>

#include "coords/cpu/key_list.hpp"
#include "maps/cuda/strided_set.hpp"

namespace pumice::cuda {
namespace {

constexpr std::size_t kMostLevels = 8;      // that one sort makes
constexpr std::int64_t kLeastRoom = 1024;   // small levels differ most from scan to scan

std::int64_t scaled(std::int64_t count, double factor) {
  return std::max(kLeastRoom,
                  static_cast<std::int64_t>(std::ceil(static_cast<double>(count) * factor)));
}

std::int64_t read_back(const RowCountRef& count, StreamView stream) {
  return count.count == nullptr ? count.capacity : copy_to_host(count.count, 1, stream).front();
}

KeyLayout layout_of(int dimension, const CoordinateBounds& bounds, std::int32_t batch_size) {
  Bounds wide;
  std::copy(bounds.low.begin(), bounds.low.end(), wide.low.begin());
  std::copy(bounds.high.begin(), bounds.high.end(), wide.high.begin());
  return roomy_layout(dimension, wide, batch_size);
}

bool halves_every_axis(const KernelWindow& window) {
  return std::all_of(window.stride.begin(), window.stride.begin() + window.dimension,
                     [](std::int32_t stride) { return stride == 2; });
}

}   // namespace

MapPlan::MapPlan(const MapCache& maps, const CoordinateSetPtr& input, const PlanRoom& room,
                 const MapPlan* earlier)
    : room_(room) {
  const StreamView stream = input->stream();
  PUMICE_EXPECTS(stream.device.kind == DeviceKind::cuda,
                 "a plan of sets and maps is for a CUDA device; the input is on ",
                 to_string(stream.device));
  const std::int64_t rows = input->rows().wait_for_host(stream);
  PUMICE_EXPECTS(room.rows >= rows, "a plan with room for ", room.rows,
                 " rows cannot be learned from a scan of ", rows, "; give it more room");
  const double factor = room.margin * static_cast<double>(room.rows) /
                        static_cast<double>(std::max<std::int64_t>(rows, 1));
  const auto room_of = [&](const CoordinateSet& set, double by) {
    const CoordinateSetRef ref = ref_of(set);
    const std::int64_t rows_of_scan = read_back(ref.rows, stream);
    const std::int64_t all_rows = scaled(rows_of_scan, by);
    return SetCapacity{all_rows, std::min(all_rows, scaled(read_back(ref.blocks, stream), by)),
                       rows_of_scan};
  };
  input_ = {.layout = layout_of(input->dimension(), room.bounds, input->batch_size()),
            .bounds = room.bounds,
            .batch_size = input->batch_size(),
            .options = input->options(),
            .capacities = {{room.rows, std::min(room.rows, room_of(*input, factor).blocks), rows}}};

  std::unordered_map<const CoordinateSet*, std::size_t> number{{input.get(), 0}};
  for (const MapCache::Entry& entry : maps.entries()) {
    const auto from = number.find(entry.key.in.get());
    PUMICE_EXPECTS(from != number.end(), "the map of ", to_string(entry.map->window()),
                   " is of sites that do not follow from the input by convolutions or pooling: a "
                   "plan cannot make them again");
    const KernelMap& map = *entry.map;
    if (!number.contains(map.out().get())) {
      PUMICE_EXPECTS(entry.key.out == nullptr, "the map of ", to_string(map.window()),
                     " leads to sites that were given and do not follow from the input: a plan "
                     "cannot make them again");
      CoordinateOptions options = map.out()->options();
      options.bounds.reset();
      sets_.push_back({.from = from->second,
                       .kind = entry.key.kind,
                       .window = map.window(),
                       .options = std::move(options),
                       .room = room_of(*map.out(), factor)});
      number.emplace(map.out().get(), sets_.size());
    }
    MapStep step{.kind = entry.key.kind,
                 .in = number.at(map.in().get()),
                 .out = number.at(map.out().get()),
                 .key_names_out = entry.key.out != nullptr,
                 .window = map.window(),
                 .on_device = DeviceWindow::on(stream, map.window()),
                 .outputs_are_finer = map.outputs_are_finer(),
                 .has_identity_offset = map.view().has_identity_offset};
    for (const MapFormats::Asked& asked : MapFormats::of(map).asked())
      step.tiles.push_back({asked.wanted, scaled(read_back(asked.entries, stream), factor)});
    if (const auto pairs = MapFormats::of(map).asked_pairs())
      step.pair_capacity = scaled(read_back(*pairs, stream), factor);
    maps_.push_back(std::move(step));
  }
  if (earlier != nullptr && same_steps(*earlier)) widen(*earlier);
  tell_apart();
  learn_levels();
  zeroed_bytes_ = bytes_to_zero();
}

bool MapPlan::same_steps(const MapPlan& other) const {
  return std::ranges::equal(sets_, other.sets_,
                            [](const SetStep& a, const SetStep& b) {
                              return a.from == b.from && a.kind == b.kind && a.window == b.window;
                            }) &&
         std::ranges::equal(maps_, other.maps_, [](const MapStep& a, const MapStep& b) {
           return a.kind == b.kind && a.in == b.in && a.out == b.out && a.window == b.window;
         });
}

/// Room that suffices for tiles where others had that much: of twice the height there are half as
/// many, each with the offsets of both, and rows sorted by mask need no more of them.
std::int64_t MapPlan::most_entries(const TilesWanted& wanted, std::span<const TilesStep> tiles) {
  std::optional<std::int64_t> least;
  for (const TilesStep& before : tiles) {
    const TileCut& cut = before.wanted.cut;
    if (before.wanted.is_transposed != wanted.is_transposed ||
        (cut.sort_by_mask && !wanted.cut.sort_by_mask))
      continue;
    const std::int64_t lower = (cut.tile_rows + wanted.cut.tile_rows - 1) / wanted.cut.tile_rows;
    const std::int64_t entries = before.entry_capacity * std::max<std::int64_t>(lower, 1);
    least = std::min(entries, least.value_or(entries));
  }
  return least.value_or(0);
}

void MapPlan::widen(const MapPlan& earlier) {
  const auto wider = [](SetCapacity& room, const SetCapacity& before) {
    room.rows = std::max(room.rows, before.rows);
    room.blocks = std::max(room.blocks, before.blocks);
  };
  if (earlier.room_.rows <= room_.rows)
    wider(input_.capacities.front(), earlier.input_.capacities.front());
  for (std::size_t i = 0; i < sets_.size(); ++i)
    wider(sets_[i].room, earlier.sets_[i].room);
  for (std::size_t i = 0; i < maps_.size(); ++i) {
    MapStep& step = maps_[i];
    const MapStep& before = earlier.maps_[i];
    for (TilesStep& tiles : step.tiles)
      tiles.entry_capacity =
          std::max(tiles.entry_capacity, most_entries(tiles.wanted, before.tiles));
    if (step.pair_capacity && before.pair_capacity)
      step.pair_capacity = std::max(*step.pair_capacity, *before.pair_capacity);
  }
}

/// No two sets have the same room, so that whoever sees a number of rows knows whose they are.
void MapPlan::tell_apart() {
  const auto is_taken = [&](std::size_t set) {
    const std::int64_t rows = sets_[set].room.rows;
    const auto has_it = [&](const SetStep& other) { return other.room.rows == rows; };
    return rows == room_.rows || rows == room_.points ||
           std::any_of(sets_.begin(), sets_.begin() + static_cast<std::ptrdiff_t>(set), has_it);
  };
  for (std::size_t set = 0; set < sets_.size(); ++set) {
    while (is_taken(set))
      ++sets_[set].room.rows;
  }
}

/// A chain of halvings from the input on comes out of the sort that the input takes anyway.
void MapPlan::learn_levels() {
  KeyLayout layout = input_.layout;
  for (std::size_t last = 0;;) {
    const auto next = std::find_if(sets_.begin(), sets_.end(), [&](const SetStep& set) {
      return set.from == last && set.kind == Kind::cell && !set.is_level &&
             halves_every_axis(set.window) && !set.options.spatial_shape;
    });
    if (next == sets_.end() || !can_halve(layout) || input_.capacities.size() == kMostLevels)
      return;
    layout = halved(layout);
    next->is_level = true;
    input_.capacities.push_back(next->room);
    last = static_cast<std::size_t>(next - sets_.begin()) + 1;
  }
}

const DeviceWindow& MapPlan::window_of_set(std::size_t set) const {
  const auto map = std::find_if(maps_.begin(), maps_.end(),
                                [&](const MapStep& step) { return step.out == set; });
  return *map->on_device;
}

CoordinateSetPtr MapPlan::make_set(const std::vector<CoordinateSetPtr>& sets,
                                   std::size_t number) const {
  const SetStep& step = sets_[number - 1];
  const PlannedSet planned{step.room, &window_of_set(number)};
  const CoordinateSetPtr& from = sets[step.from];
  return step.kind == Kind::generative
             ? generated_set(from, step.window, step.options, &planned)
             : strided_set(from, step.window, step.kind == Kind::cell, step.options, &planned);
}

std::vector<CutRequest> MapPlan::cuts_of(const MapStep& step, MapFormats& formats) {
  std::vector<CutRequest> requests;
  for (const TilesStep& tiles : step.tiles)
    requests.push_back(formats.request(tiles.wanted, tiles.entry_capacity));
  if (step.pair_capacity) formats.list_pairs(requests, *step.pair_capacity);
  return requests;
}

std::int64_t MapPlan::rows_of_set(std::size_t set) const {
  return set == 0 ? room_.rows : sets_[set - 1].room.rows;
}

std::int64_t MapPlan::bytes_to_zero() const {
  std::vector<CutRequest> requests;
  const auto add = [&](const MapStep& step, std::int64_t rows) -> CutRequest& {
    return requests.emplace_back(
        CutRequest{.map = {.out = {.rows = {nullptr, rows}}, .window = step.on_device.get()}});
  };
  for (const MapStep& step : maps_) {
    const std::int64_t in = rows_of_set(step.in);
    const std::int64_t out = rows_of_set(step.out);
    for (const TilesStep& tiles : step.tiles) {
      const TileCut& cut = tiles.wanted.cut;
      add(step, tiles.wanted.is_transposed ? in : out).tiles = TileOptions{
          .tile_rows = cut.tile_rows, .splits = cut.splits, .sort_by_mask = cut.sort_by_mask};
    }
    if (step.pair_capacity) add(step, std::min(in, out)).pairs = PairOptions{};
  }
  return cuda::zeroed_bytes(requests);
}

MapPlan::Made MapPlan::make(const Tensor& coordinates, const RowCount& rows) const {
  PUMICE_EXPECTS(coordinates.rows() == room_.rows, "a plan with room for ", room_.rows,
                 " rows is given coordinates ", to_string(coordinates.shape()));
  const StreamView stream = coordinates.stream();
  const ZeroedRoom zeroed(zeroed_bytes_, stream, default_allocator(stream.device));
  return make_maps(planned_sets(coordinates, rows, input_, zeroed.words), stream, zeroed.arena);
}

MapPlan::Made MapPlan::make(const ConstTensorView& points, const ConstTensorView& batch,
                            const RowCount& count, const VoxelSiteOptions& options,
                            const Place& row_of) const {
  const StreamView stream = points.stream();
  const ZeroedRoom zeroed(zeroed_bytes_, stream, default_allocator(stream.device));
  PlannedVoxels voxels =
      planned_voxels(points, batch, count, options, input_, row_of, zeroed.words);
  Made made = make_maps(voxels.sets, stream, zeroed.arena);
  made.row_of = std::move(voxels.row_of);
  return made;
}

MapPlan::Made MapPlan::make_maps(const std::vector<CoordinateSetPtr>& levels, StreamView stream,
                                 const std::shared_ptr<ArenaAllocator>& zeroed) const {
  std::vector<CoordinateSetPtr> sets{levels.front()};
  std::size_t next_level = 1;
  while (sets.size() <= sets_.size()) {
    const bool is_level = sets_[sets.size() - 1].is_level;
    sets.push_back(is_level ? levels[next_level++] : make_set(sets, sets.size()));
  }

  Made made{sets.front(), std::make_shared<MapCache>()};
  std::vector<CutRequest> requests;
  std::vector<std::size_t> end;   // of those of each map
  for (const MapStep& step : maps_) {
    KernelMapPtr map = KernelMap::on_device(step.window, sets[step.in], sets[step.out],
                                            step.outputs_are_finer, step.has_identity_offset);
    MapFormats& formats = MapFormats::of(*map);
    formats.keep_window(step.on_device);
    std::ranges::move(cuts_of(step, formats), std::back_inserter(requests));
    end.push_back(requests.size());
    made.maps->add(
        {{step.kind, sets[step.in], step.key_names_out ? sets[step.out] : nullptr, step.window},
         std::move(map)});
  }
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  std::vector<CutMap> built = cut_maps(runner, requests, zeroed);
  std::size_t next = 0;
  for (std::size_t i = 0; i < maps_.size(); ++i) {
    const KernelMap& map = *made.maps->entries()[i].map;
    for (; next < end[i]; ++next)
      MapFormats::of(map).keep(requests[next], std::move(built[next]));
  }
  return made;
}

std::vector<std::int64_t> MapPlan::capacities() const {
  std::vector<std::int64_t> rows{room_.rows};
  for (const SetStep& set : sets_)
    rows.push_back(set.room.rows);
  return rows;
}

}   // namespace pumice::cuda
