// Up to 16 cuts that are made together: their tasks, their memory, their launches.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "coords/cuda/fill_list.hpp"
#include "coords/cuda/radix_sort.hpp"
#include "formats/cuda/counted_cuts.hpp"
#include "formats/cuda/cut_maps.hpp"

namespace pumice::cuda {

/// When what a cut leads to gets its memory: at once, in the room that the request says, or when
/// the host knows how much there is of everything.
enum class CutMemory : unsigned char { given, counted };

class CutBatchBuilder {
 public:
  /// What is to be zero comes from `zeroed` as far as that goes; see FillList.
  CutBatchBuilder(jit::KernelRunner& runner, CutMemory memory,
                  std::shared_ptr<ArenaAllocator> zeroed)
      : runner_(runner), memory_(memory), fill_(std::move(zeroed)), search_(runner, fill_) {}

  /// Whether there is room for another request's task, sets and sort.
  bool takes(const CutRequest& request) const;
  /// A request of a map that is in the batch already takes what is found for that one. Returns what
  /// this one is cut from, which is complete once the batch is built.
  std::shared_ptr<OrderedMap> add(const CutRequest& request);
  /// Enqueues everything; cuts in the order in which they were added.
  std::vector<CutMap> build();
  /// The same in two steps, for CutMemory::counted: all that counts, with the words that the host
  /// is to know, and all that comes once it knows them. Between the two, whether there is room for
  /// what was counted.
  void count(CountReader& reader);
  bool fits(std::span<const std::int64_t> counts) const;
  std::vector<CutMap> write(const KnownCounts& known);

 private:
  /// What only the build needs.
  struct Scratch {
    MapSearch map;
    std::shared_ptr<OrderedMap> order;   // may be that of another task, or of an earlier cut
    bool is_ordered_here = false;
    bool is_centred = false;
    // Of the words that a reader brings, those that say how many there are.
    std::size_t tile_word = 0;
    std::size_t entry_word = 0;
    std::size_t pair_word = 0;
  };
  using BlocksOf = std::function<std::int64_t(const CutTask&)>;

  int tasks() const { return batch_.tasks; }
  const CoordinateSetRef& out_of(const CutTask& task) const {
    return search_.sets()[static_cast<std::size_t>(task.map.out_set)];
  }
  std::int64_t tiles_of_pairs(const CutTask& task) const;
  Scratch& scratch_of(const CutTask& task) {
    return scratch_[static_cast<std::size_t>(&task - batch_.task)];
  }
  const Scratch& scratch_of(const CutTask& task) const {
    return scratch_[static_cast<std::size_t>(&task - batch_.task)];
  }
  /// The number of a task of the same map; -1: there is none.
  int find_map(const MapSearch& map) const;
  /// The order that the request wants, of a task of the same map or an earlier cut; null: there is
  /// none.
  std::shared_ptr<OrderedMap> find_order(const CutRequest& request) const;
  bool sorts(const CutRequest& request) const;
  void take_map(const CutRequest& request, CutTask& task, Scratch& scratch);
  void take_order(const CutRequest& request, CutTask& task, Scratch& scratch);
  void add_order(const CutRequest& request, CutTask& task, OrderedMap& order);
  void add_tiles(const CutRequest& request, CutTask& task, CutMap& cut, Scratch& scratch);
  void add_pairs(const CutRequest& request, CutTask& task, CutMap& cut);
  bool is_sorted_here(const CutTask& task) {
    return scratch_of(task).is_ordered_here && task.unsorted == nullptr;
  }
  /// What tiles and pairs look back at.
  void take_sums();
  /// A launch in which each task has `blocks(task)` blocks.
  void launch(const char* kernel, int threads, const BlocksOf& blocks);
  /// For each row what it is sorted by, or its place where it stays.
  void write_keys(const char* kernel);
  template <class Key> void search_and_sort();
  template <class Key> void sort(RadixSort<Key>& sort);
  /// Everything up to the order of the outputs.
  void search_and_order();
  void cut_tiles();
  /// Also where there is no row: the first tile says how many pairs there are. `rows` says how many
  /// rows of a task's outputs to walk over.
  template <class RowsOf> void list_pairs(const RowsOf& rows);
  void make_tiles(CutTask& task, CutMap& cut, std::int64_t tiles, std::int64_t entries,
                  bool is_centred);
  void make_pairs(CutTask& task, CutMap& cut, std::int64_t pairs);

  jit::KernelRunner& runner_;
  CutMemory memory_;
  FillList fill_;
  MatchBatchBuilder search_;
  CutBatch batch_{};
  std::vector<SortRoom> rooms_;   // a segment of the sort for each split of each order
  std::vector<CutMap> cuts_;
  std::vector<Scratch> scratch_;
  Buffer<std::uint64_t> sums_;
};

}   // namespace pumice::cuda
