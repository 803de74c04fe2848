// Tasks, memory and launches of a batch of maps.
#include "maps/cuda/map_batch.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <pumice/shared/tile_map.h>
#include <pumice/core/error.hpp>

#include "core/cuda/status.hpp"
#include "maps/cuda/sources.hpp"

namespace pumice::cuda {
namespace {

constexpr int kWarpThreads = 32;

std::int64_t ceil_of(std::int64_t size, std::int64_t part) {
  return (size + part - 1) / part;
}

/// Which kernel finds the inputs of a task; see maps/match.h.
enum class Matching { blocks, children, parities, rows };

Matching matching_of(const MapTask& task) {
  const WindowRef& window = task.relation.window;
  if (window.of_child != nullptr) return Matching::children;
  if (window.cell_move != nullptr) return Matching::blocks;
  if (window.of_parity != nullptr) return Matching::parities;
  return Matching::rows;
}

CellRelation relation_of(const MapRequest& request) {
  const KeyRelation keys = key_relation(request);
  return {request.window->ref(keys, request.reach), request.reach, keys};
}

int split_key_bits(std::int64_t volume, int splits) {
  return static_cast<int>(std::min<std::int64_t>(ceil_of(volume, splits), kMaskKeyBits));
}

}   // namespace

int MapBatchBuilder::find_set(const CoordinateSetRef& set) const {
  for (int i = 0; i < sets_; ++i) {
    if (same_set(batch_.set[i], set)) return i;
  }
  return -1;
}

int MapBatchBuilder::add_set(const CoordinateSetRef& set) {
  const int found = find_set(set);
  if (found >= 0) return found;
  batch_.set[sets_] = set;
  return sets_++;
}

const MapTask* MapBatchBuilder::find_shared(const MapRequest& request) const {
  for (std::size_t i = 0; i < scratch_.size(); ++i) {
    const Scratch& those = scratch_[i];
    if (those.searched.serves(request))
      return those.shared != nullptr ? those.shared : batch_.task + i;
  }
  return nullptr;
}

bool MapBatchBuilder::takes(const MapRequest& request) const {
  const bool one_set = same_set(request.in, request.out);
  const int new_sets =
      (find_set(request.in) < 0 ? 1 : 0) + (find_set(request.out) < 0 && !one_set ? 1 : 0);
  const bool sorts = request.tiles && request.tiles->sort_by_mask && request.matched == nullptr &&
                     find_shared(request) == nullptr;
  const int splits = sorts ? request.tiles->splits : 0;
  return tasks() < kMaxTasks && sets_ + new_sets <= kMaxTaskSets &&
         static_cast<int>(orders_.size()) + splits <= kMostSortSegments;
}

/// Memory for what is found of the map, unless it is there or another task of the batch finds it.
void MapBatchBuilder::take_match(const MapRequest& request, MapTask& task, Scratch& scratch) {
  scratch.searched = SearchedMap::of(request);
  scratch.shared = find_shared(request);
  scratch.was_matched = scratch.shared != nullptr || request.matched != nullptr;
  if (scratch.shared != nullptr) {
    scratch.match = scratch_[static_cast<std::size_t>(scratch.shared - batch_.task)].match;
    task.found = scratch.shared->found;
  } else {
    scratch.match = scratch.was_matched ? request.matched : std::make_shared<MatchedMap>();
  }
  MatchedMap& match = *scratch.match;
  if (!scratch.was_matched) {
    const std::int64_t volume = request.window->volume();
    match.mask = runner_.make<std::uint32_t>(request.out.rows.capacity * task.words);
    match.offset_count = runner_.make<std::uint32_t>(volume);
    match.step = runner_.make<OffsetStep>(volume);
    if (task.words == 1) {
      scratch.found = runner_.make<std::int32_t>(request.out.rows.capacity * volume);
      task.found = scratch.found.data();
    }
  }
  task.mask = match.mask.data();
  task.offset_count = match.offset_count.data();
  task.step = match.step.data();
}

std::shared_ptr<MatchedMap> MapBatchBuilder::add(const MapRequest& request) {
  PUMICE_ENSURES(takes(request), "a map too many in a batch");
  Scratch scratch;
  MapTask task;
  DeviceMap map;
  task.relation = relation_of(request);
  task.in_set = add_set(request.in);
  task.out_set = add_set(request.out);
  task.words = static_cast<std::int32_t>(ceil_of(request.window->volume(), kWarpThreads));
  take_match(request, task, scratch);
  if (request.keeps_match) map.matched_ = scratch.match;
  map.counts_ = runner_.make<std::int64_t>(3);
  task.splits = 0;
  if (request.tiles) add_tiles(request, task, map, scratch);
  if (request.pairs) add_pairs(request, task, map, scratch);
  batch_.task[batch_.tasks++] = task;
  maps_.push_back(std::move(map));
  scratch_.push_back(std::move(scratch));
  return scratch_.back().match;
}

void MapBatchBuilder::add_tiles(const MapRequest& request, MapTask& task, DeviceMap& map,
                                Scratch& scratch) {
  const TileOptions& options = *request.tiles;
  PUMICE_ENSURES(options.tile_rows > 0 && options.tile_rows % kBlockRows == 0 &&
                     options.tile_rows <= kBlockRows * kMaxTileBlocks,
                 request.name, ": tiles of ", options.tile_rows, " rows");
  PUMICE_ENSURES(options.splits >= 1 && options.splits <= kMaxSplits, request.name, ": ",
                 options.splits, " splits");
  const std::int64_t volume = request.window->volume();
  PUMICE_EXPECTS(volume <= kMostTileOffsets, request.name, ": a kernel of ", volume,
                 " offsets; on a device the most is ", kMostTileOffsets,
                 ", so take a smaller kernel");
  const std::int64_t tiles = options.splits * ceil_of(request.out.rows.capacity, options.tile_rows);
  const std::int64_t entries =
      options.entry_capacity > 0 ? options.entry_capacity : tiles * ceil_of(volume, options.splits);
  PUMICE_EXPECTS(entries <= std::numeric_limits<std::int32_t>::max(), request.name, ": room for ",
                 entries, " entries of tiles; the most is 2147483647, so give a smaller capacity");
  const std::int64_t blocks = options.tile_rows / kBlockRows;
  task.splits = options.splits;
  task.tile_rows = options.tile_rows;
  MatchedMap& match = *scratch.match;
  if (scratch.was_matched) {
    PUMICE_ENSURES(match.is_ordered_for(options.splits, options.sort_by_mask), request.name,
                   ": matched for ", match.splits, " splits, not ", options.splits);
    task.sorted = match.sorted;
  } else {
    match.splits = options.splits;
    match.sorted_by_mask = options.sort_by_mask;
    match.label = runner_.make<std::uint16_t>(volume);
    match.ordered_rows = runner_.make<std::int64_t>(1);
    if (options.sort_by_mask) {
      orders_.insert(orders_.end(), static_cast<std::size_t>(options.splits),
                     {request.out.rows.capacity, split_key_bits(volume, options.splits)});
    } else {
      match.unsorted = runner_.make<std::uint32_t>(request.out.rows.capacity * options.splits);
      match.sorted = task.unsorted = match.unsorted.data();
      task.sorted = match.sorted;
    }
  }
  task.tile_capacity = tiles;
  task.entry_capacity = entries;
  task.tile_site = status_site(request.name + ": tiles");
  task.entry_site = status_site(request.name + ": entries of tiles");

  scratch.block_mask = runner_.make<std::uint32_t>(tiles * blocks * task.words);
  scratch.tile_entries = runner_.make<std::int32_t>(tiles);
  scratch.entry_begin = runner_.make<std::int32_t>(tiles);
  task.label = match.label.data();
  task.ordered_rows = match.ordered_rows.data();
  task.block_mask = scratch.block_mask.data();
  task.tile_entries = scratch.tile_entries.data();
  task.entry_begin = scratch.entry_begin.data();

  map.tile_order_ = runner_.make<TileRun>(tiles);
  map.entry_ = runner_.make<TileEntry>(entries);
  map.mirrored_ = runner_.make<TileEntry>(request.is_centred ? entries : 0);
  map.in_row_ = runner_.make<std::int32_t>(entries * options.tile_rows);
  map.out_row_ = runner_.make<std::int32_t>(tiles * options.tile_rows);
  task.tile_order = map.tile_order_.data();
  task.entry = map.entry_.data();
  task.mirrored = map.mirrored_.data();
  task.in_row = map.in_row_.data();
  task.out_row = map.out_row_.data();
  task.tile_count = map.counts_.data();
  task.entry_count = map.counts_.data() + 1;
  map.entries_ = {task.entry_count, entries};
  map.tiles_ = {.tile_order = task.tile_order,
                .entry = task.entry,
                .in_row = task.in_row,
                .out_row = task.out_row,
                .tiles = {task.tile_count, tiles},
                .in_rows = request.in.rows,
                .out_rows = request.out.rows,
                .tile_rows = task.tile_rows,
                .offsets = task.relation.window.volume};
}

void MapBatchBuilder::add_pairs(const MapRequest& request, MapTask& task, DeviceMap& map,
                                Scratch& scratch) {
  const std::int64_t volume = request.window->volume();
  const std::int64_t rows = request.out.rows.capacity;
  const std::int64_t pairs =
      request.pairs->pair_capacity > 0 ? request.pairs->pair_capacity : rows * volume;
  scratch.tile_pairs = runner_.make<std::uint32_t>(volume * ceil_of(rows, kPairThreads));
  map.offset_begin_ = runner_.make<std::int64_t>(volume + 1);
  map.pair_in_ = runner_.make<std::int32_t>(pairs);
  map.pair_out_ = runner_.make<std::int32_t>(pairs);
  task.tile_pairs = scratch.tile_pairs.data();
  task.offset_begin = map.offset_begin_.data();
  task.pair_in = map.pair_in_.data();
  task.pair_out = map.pair_out_.data();
  task.pair_count = map.counts_.data() + 2;
  task.pair_capacity = pairs;
  task.pair_site = status_site(request.name + ": pairs");
  map.pairs_ = {.offset_begin = task.offset_begin,
                .in = task.pair_in,
                .out = task.pair_out,
                .pairs = {task.pair_count, pairs},
                .offsets = task.relation.window.volume};
}

void MapBatchBuilder::launch(const char* kernel, int threads, const BlocksOf& blocks) {
  std::int64_t next = 0;
  for (std::size_t i = 0; i < all_tasks().size(); ++i) {
    PUMICE_ENSURES(next <= std::numeric_limits<std::int32_t>::max(), kernel, " of ", next,
                   " blocks");
    batch_.first_block[i] = static_cast<std::int32_t>(next);
    next += blocks(all_tasks()[i]);
  }
  runner_.run(maps_kernel(kernel), {.blocks = next, .threads = threads}, batch_);
}

void MapBatchBuilder::match() {
  const auto launch_for = [&](Matching matching, const char* kernel, const BlocksOf& blocks) {
    launch(kernel, kMatchThreads, [&](const MapTask& task) {
      return matching_of(task) == matching && !was_matched(task) ? blocks(task) : 0;
    });
  };
  launch_for(Matching::blocks, "match_blocks", [&](const MapTask& task) {
    constexpr std::int64_t kGroup = kMatchWarps * kBlocksPerWarp;
    return ceil_of(out_of(task).blocks.capacity, kGroup) * task.words;
  });
  launch_for(Matching::children, "match_children", [&](const MapTask& task) {
    return ceil_of(out_of(task).rows.capacity, kMatchThreads);
  });
  launch_for(Matching::parities, "match_parities", [&](const MapTask& task) {
    const std::int64_t group =
        kMatchThreads / task.relation.window.parity_lanes * kParityRowsPerLane;
    return ceil_of(out_of(task).rows.capacity, group);
  });
  launch_for(Matching::rows, "match_rows", [&](const MapTask& task) {
    const std::int64_t group =
        kMatchThreads / lanes_of_row(task.relation.window.volume) * kRowsPerLane;
    return ceil_of(out_of(task).rows.capacity, group) * task.words;
  });
}

void MapBatchBuilder::write_keys(const char* kernel) {
  launch(kernel, kOrderThreads, [&](const MapTask& task) {
    // Also where there is no row: somebody has to say so.
    const std::int64_t capacity = std::max<std::int64_t>(out_of(task).rows.capacity, 1);
    return is_ordered_here(task) ? ceil_of(capacity, kOrderThreads) : 0;
  });
}

template <class Key> void MapBatchBuilder::order(RadixSort<Key>& sort) {
  std::vector<RowCountRef> rows;
  for (MapTask& task : all_tasks()) {
    if (!is_sorted_here(task)) continue;
    task.keys = sort.keys(rows.size());
    task.sorted = sort.sorted_values(rows.size());
    rows.insert(rows.end(), static_cast<std::size_t>(task.splits),
                {task.ordered_rows, out_of(task).rows.capacity});
  }
  write_keys(sizeof(Key) == 4 ? "gray_keys_u32" : "gray_keys_u64");
  sort.run(runner_, rows);
}

template <class Key> void MapBatchBuilder::match_and_order(FillList& fill) {
  RadixSort<Key> sort(runner_, orders_, fill);
  fill.run(runner_);
  match();
  order(sort);
  const auto sorts =
      std::make_shared<std::array<Buffer<std::uint32_t>, 2>>(sort.take_all_sorted_values());
  for (const MapTask& task : all_tasks()) {
    if (!is_sorted_here(task)) continue;
    MatchedMap& match = *scratch_[static_cast<std::size_t>(&task - batch_.task)].match;
    match.sorts = sorts;
    match.sorted = task.sorted;
  }
  for (MapTask& task : all_tasks()) {
    const MapTask* const shared = scratch_[static_cast<std::size_t>(&task - batch_.task)].shared;
    if (shared != nullptr) task.sorted = shared->sorted;
  }
}

void MapBatchBuilder::make_tiles() {
  const auto tiles = [](const MapTask& task) { return task.splits == 0 ? 0 : task.tile_capacity; };
  launch("mask_tiles", kTileThreads, tiles);
  runner_.run(maps_kernel("plan_tiles"), {.blocks = tasks(), .threads = kPlanThreads}, batch_);
  launch("fill_tiles", kTileThreads, tiles);
}

void MapBatchBuilder::make_pairs() {
  const auto tiles = [&](const MapTask& task) {
    return task.pair_count == nullptr ? 0 : ceil_of(out_of(task).rows.capacity, kPairThreads);
  };
  launch("count_pairs", kPairThreads, tiles);
  launch("sum_pairs", kPairThreads, [](const MapTask& task) {
    return task.pair_count == nullptr ? 0 : std::int64_t{task.relation.window.volume};
  });
  launch("write_pairs", kPairThreads, tiles);
}

std::vector<DeviceMap> MapBatchBuilder::build() {
  batch_.status = runner_.status();
  FillList fill;
  for (Scratch& scratch : scratch_) {
    if (!scratch.was_matched) fill.add(scratch.match->offset_count, 0);
  }
  bool any_tiles = false;
  bool any_pairs = false;
  for (const MapTask& task : all_tasks()) {
    any_tiles |= task.splits > 0;
    any_pairs |= task.pair_count != nullptr;
  }
  const bool has_short_keys = std::all_of(orders_.begin(), orders_.end(),
                                          [](const SortRoom& room) { return room.bits <= 32; });
  if (orders_.empty()) {
    fill.run(runner_);
    match();
    write_keys("gray_keys_u32");   // of maps whose outputs stay as they are, if any
  } else if (has_short_keys) {
    match_and_order<std::uint32_t>(fill);
  } else {
    match_and_order<std::uint64_t>(fill);
  }
  if (any_tiles) make_tiles();
  if (any_pairs) make_pairs();
  return std::move(maps_);
}

}   // namespace pumice::cuda
