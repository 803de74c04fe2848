// Tasks, memory and launches of a batch of searches.
#include "maps/cuda/match_batch.hpp"

#include <pumice/core/error.hpp>

#include "maps/cuda/batch_launch.hpp"
#include "maps/cuda/sources.hpp"

namespace pumice::cuda {
namespace {

constexpr int kWarpThreads = 32;

/// Thread blocks that a task takes; see maps/match.h.
std::int64_t blocks_of(const MatchTask& task, const CoordinateSetRef& out) {
  const WindowRef& window = task.relation.window;
  switch (matching_of(window)) {
    case Matching::blocks: {
      constexpr std::int64_t kGroup = kMatchWarps * kBlocksPerWarp;
      return ceil_of(out.blocks.capacity, kGroup) * task.words;
    }
    case Matching::children: return ceil_of(out.rows.capacity, kMatchThreads);
    case Matching::parities: {
      const std::int64_t group = kMatchThreads / window.parity_lanes * kParityRowsPerLane;
      return ceil_of(out.rows.capacity, group);
    }
    case Matching::rows: break;
  }
  const std::int64_t group = kMatchThreads / lanes_of_row(window.volume) * kRowsPerLane;
  return ceil_of(out.rows.capacity, group) * task.words;
}

CellRelation relation_of(const MapSearch& map) {
  const KeyRelation keys = key_relation(map);
  return {map.window->ref(keys, map.reach), map.reach, keys};
}

}   // namespace

bool same_set(const CoordinateSetRef& a, const CoordinateSetRef& b) {
  return a.keys == b.keys && a.rows.count == b.rows.count && a.rows.capacity == b.rows.capacity;
}

bool same_map(const MapSearch& a, const MapSearch& b) {
  return a.window == b.window && a.reach == b.reach && same_set(a.in, b.in) &&
         same_set(a.out, b.out);
}

KeyRelation key_relation(const MapSearch& map) {
  const KeyLayout& in = map.in.layout;
  const KeyLayout& out = map.out.layout;
  if (map.window->has_stride(1) && in == out) return KeyRelation::same;
  if (!map.window->has_stride(2)) return KeyRelation::any;
  if (map.reach == Reach::out_to_in && can_halve(in) && halved(in) == out)
    return KeyRelation::in_is_finer;
  if (map.reach == Reach::in_to_out && can_halve(out) && halved(out) == in)
    return KeyRelation::out_is_finer;
  return KeyRelation::any;
}

int MatchBatchBuilder::find_set(const CoordinateSetRef& set) const {
  for (int i = 0; i < sets_; ++i) {
    if (same_set(batch_.set[i], set)) return i;
  }
  return -1;
}

int MatchBatchBuilder::add_set(const CoordinateSetRef& set) {
  const int found = find_set(set);
  if (found >= 0) return found;
  PUMICE_ENSURES(sets_ < kMaxTaskSets, "a set too many in a batch of maps");
  batch_.set[sets_] = set;
  return sets_++;
}

bool MatchBatchBuilder::takes(const MapSearch& map) const {
  const bool one_set = same_set(map.in, map.out);
  const int new_sets = (find_set(map.in) < 0 ? 1 : 0) + (find_set(map.out) < 0 && !one_set ? 1 : 0);
  return batch_.tasks < kMaxTasks && sets_ + new_sets <= kMaxTaskSets;
}

MatchTask MatchBatchBuilder::searched_before(const MapSearch& map, MatchedMap& match) {
  MatchTask task;
  task.relation = relation_of(map);
  task.in_set = add_set(map.in);
  task.out_set = add_set(map.out);
  task.words = static_cast<std::int32_t>(ceil_of(map.window->volume(), kWarpThreads));
  task.mask = match.mask.data();
  task.offset_count = match.offset_count.data();
  task.step = match.step.data();
  return task;
}

MatchTask MatchBatchBuilder::add(const MapSearch& map, MatchedMap& match) {
  PUMICE_ENSURES(takes(map), "a map too many in a batch");
  const std::int64_t volume = map.window->volume();
  const std::int64_t words = ceil_of(volume, kWarpThreads);
  match.mask = runner_.make<std::uint32_t>(map.out.rows.capacity * words);
  match.offset_count = fill_.zeros<std::uint32_t>(runner_, volume);
  match.step = runner_.make<OffsetStep>(volume);
  MatchTask& task = batch_.task[batch_.tasks++];
  task = searched_before(map, match);
  if (words == 1) {
    found_.push_back(runner_.make<std::int32_t>(map.out.rows.capacity * volume));
    task.found = found_.back().data();
  }
  return task;
}

void MatchBatchBuilder::launch() {
  if (batch_.tasks == 0) return;
  launch_batch(runner_, maps_kernel("match_maps"), kMatchThreads, batch_,
               [&](const MatchTask& task) { return blocks_of(task, batch_.set[task.out_set]); });
}

}   // namespace pumice::cuda
