// Up to 16 maps that are built together: their tasks, their memory, their launches.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "coords/cuda/fill_list.hpp"
#include "coords/cuda/radix_sort.hpp"
#include "maps/cuda/build_maps.hpp"
#include "maps/cuda/searched_map.hpp"

namespace pumice::cuda {

class MapBatchBuilder {
 public:
  explicit MapBatchBuilder(jit::KernelRunner& runner) : runner_(runner) {}

  /// Whether there is room for another request's task and sets.
  bool takes(const MapRequest& request) const;
  /// A request of a map that is in the batch already takes what that one finds. Returns what this
  /// one is cut from, which is complete once the batch is built.
  std::shared_ptr<MatchedMap> add(const MapRequest& request);
  bool empty() const { return tasks() == 0; }
  /// Enqueues everything; maps in the order in which they were added.
  std::vector<DeviceMap> build();

 private:
  /// What only the build needs.
  struct Scratch {
    std::shared_ptr<MatchedMap> match;   // found here, or before
    bool was_matched = false;            // before, or by the task that it is shared with
    const MapTask* shared = nullptr;     // of this batch; null: this task's own
    SearchedMap searched{};
    Buffer<std::int32_t> found;
    Buffer<std::uint32_t> block_mask;
    Buffer<std::int32_t> tile_entries;
    Buffer<std::int32_t> entry_begin;
    Buffer<std::uint32_t> tile_pairs;
  };
  using BlocksOf = std::function<std::int64_t(const MapTask&)>;

  int tasks() const { return batch_.tasks; }
  std::span<MapTask> all_tasks() { return {batch_.task, static_cast<std::size_t>(tasks())}; }
  const CoordinateSetRef& out_of(const MapTask& task) const { return batch_.set[task.out_set]; }
  int find_set(const CoordinateSetRef& set) const;
  int add_set(const CoordinateSetRef& set);
  /// The task that finds what `request` needs; null: there is none in this batch.
  const MapTask* find_shared(const MapRequest& request) const;
  void take_match(const MapRequest& request, MapTask& task, Scratch& scratch);
  void add_tiles(const MapRequest& request, MapTask& task, DeviceMap& map, Scratch& scratch);
  void add_pairs(const MapRequest& request, MapTask& task, DeviceMap& map, Scratch& scratch);
  /// A launch in which each task has `blocks(task)` blocks.
  void launch(const char* kernel, int threads, const BlocksOf& blocks);
  void match();
  bool was_matched(const MapTask& task) const {
    return scratch_[static_cast<std::size_t>(&task - batch_.task)].was_matched;
  }
  /// Whether its outputs are still to be ordered.
  bool is_ordered_here(const MapTask& task) const { return task.splits > 0 && !was_matched(task); }
  bool is_sorted_here(const MapTask& task) const {
    return is_ordered_here(task) && task.unsorted == nullptr;
  }
  /// For each row what it is sorted by, or its place where it stays.
  void write_keys(const char* kernel);
  template <class Key> void match_and_order(FillList& fill);
  template <class Key> void order(RadixSort<Key>& sort);
  void make_tiles();
  void make_pairs();

  jit::KernelRunner& runner_;
  MapBatch batch_{};
  int sets_ = 0;
  std::vector<SortRoom> orders_;   // a segment of the sort for each split of each task
  std::vector<DeviceMap> maps_;
  std::vector<Scratch> scratch_;
};

}   // namespace pumice::cuda
