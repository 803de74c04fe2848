// Tasks, memory and launches of a batch of cuts.
#include "formats/cuda/cut_batch.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <pumice/shared/tile_map.h>
#include <pumice/core/error.hpp>

#include "core/cuda/status.hpp"
#include "formats/cuda/sources.hpp"
#include "maps/cuda/batch_launch.hpp"

namespace pumice::cuda {
namespace {

std::int64_t tiles_of(const CutTask& task) {
  return task.splits == 0 ? 0 : task.tile_capacity;
}

int split_key_bits(std::int64_t volume, int splits) {
  return static_cast<int>(std::min<std::int64_t>(ceil_of(volume, splits), kMaskKeyBits));
}

}   // namespace

int CutBatchBuilder::find_map(const MapSearch& map) const {
  for (std::size_t i = 0; i < scratch_.size(); ++i) {
    if (same_map(scratch_[i].map, map)) return static_cast<int>(i);
  }
  return -1;
}

std::shared_ptr<OrderedMap> CutBatchBuilder::find_order(const CutRequest& request) const {
  const auto fits = [&](const OrderedMap& order) { return order.is_ordered_for(*request.tiles); };
  for (const Scratch& other : scratch_) {
    if (fits(*other.order) && same_map(other.map, request.map)) return other.order;
  }
  return request.earlier != nullptr && fits(*request.earlier) ? request.earlier : nullptr;
}

bool CutBatchBuilder::sorts(const CutRequest& request) const {
  return request.tiles && request.tiles->sort_by_mask && find_order(request) == nullptr;
}

bool CutBatchBuilder::takes(const CutRequest& request) const {
  const auto rooms =
      rooms_.size() + static_cast<std::size_t>(sorts(request) ? request.tiles->splits : 0);
  return tasks() < kMaxTasks && rooms <= kMostSortSegments && search_.takes(request.map);
}

/// The map as it was searched before, as another task of the batch has it, or to be searched.
void CutBatchBuilder::take_map(const CutRequest& request, CutTask& task, Scratch& scratch) {
  const int other = find_map(request.map);
  if (other >= 0) {
    task.map = batch_.task[other].map;
    scratch.order->match = scratch_[static_cast<std::size_t>(other)].order->match;
  } else if (request.earlier != nullptr) {
    scratch.order->match = request.earlier->match;
    task.map = search_.searched_before(request.map, *scratch.order->match);
  } else {
    scratch.order->match = std::make_shared<MatchedMap>();
    task.map = search_.add(request.map, *scratch.order->match);
  }
}

/// An order that there is, or one that is made here.
void CutBatchBuilder::take_order(const CutRequest& request, CutTask& task, Scratch& scratch) {
  if (std::shared_ptr<OrderedMap> there = find_order(request)) {
    scratch.order = std::move(there);
  } else {
    scratch.is_ordered_here = true;
    add_order(request, task, *scratch.order);
  }
  task.label = scratch.order->label.data();
  task.ordered_rows = scratch.order->ordered_rows.data();
  task.sorted = scratch.order->sorted;   // where it is sorted here, known after the sort
}

void CutBatchBuilder::add_order(const CutRequest& request, CutTask& task, OrderedMap& order) {
  const TileOptions& options = *request.tiles;
  const std::int64_t volume = request.map.window->volume();
  const std::int64_t capacity = request.map.out.rows.capacity;
  order.splits = options.splits;
  order.sorted_by_mask = options.sort_by_mask;
  order.label = runner_.make<std::uint16_t>(volume);
  order.ordered_rows = runner_.make<std::int64_t>(1);
  if (options.sort_by_mask) {
    rooms_.insert(rooms_.end(), static_cast<std::size_t>(options.splits),
                  {capacity, split_key_bits(volume, options.splits)});
  } else {
    order.unsorted = runner_.make<std::uint32_t>(capacity * options.splits);
    order.sorted = task.unsorted = order.unsorted.data();
  }
}

std::shared_ptr<OrderedMap> CutBatchBuilder::add(const CutRequest& request) {
  PUMICE_ENSURES(takes(request), "a map too many in a batch");
  Scratch scratch{.map = request.map, .order = std::make_shared<OrderedMap>()};
  CutTask task;
  CutMap cut;
  take_map(request, task, scratch);
  cut.counts_ = runner_.make<std::int64_t>(3);
  if (request.tiles) add_tiles(request, task, cut, scratch);
  if (request.pairs) add_pairs(request, task, cut, scratch);
  if (request.keeps_order) cut.ordered_ = scratch.order;
  batch_.task[batch_.tasks++] = task;
  cuts_.push_back(std::move(cut));
  scratch_.push_back(std::move(scratch));
  return scratch_.back().order;
}

void CutBatchBuilder::add_tiles(const CutRequest& request, CutTask& task, CutMap& cut,
                                Scratch& scratch) {
  const TileOptions& options = *request.tiles;
  PUMICE_ENSURES(options.tile_rows > 0 && options.tile_rows % kBlockRows == 0 &&
                     options.tile_rows <= kBlockRows * kMaxTileBlocks,
                 request.map.name, ": tiles of ", options.tile_rows, " rows");
  PUMICE_ENSURES(options.splits >= 1 && options.splits <= kMaxSplits, request.map.name, ": ",
                 options.splits, " splits");
  const std::int64_t volume = request.map.window->volume();
  PUMICE_EXPECTS(volume <= kMostTileOffsets, request.map.name, ": a kernel of ", volume,
                 " offsets; on a device the most is ", kMostTileOffsets,
                 ", so take a smaller kernel");
  const std::int64_t tiles =
      options.splits * ceil_of(request.map.out.rows.capacity, options.tile_rows);
  const std::int64_t entries =
      options.entry_capacity > 0 ? options.entry_capacity : tiles * ceil_of(volume, options.splits);
  constexpr std::int64_t kMostEntries = std::numeric_limits<std::int32_t>::max();
  PUMICE_EXPECTS(entries <= kMostEntries || memory_ == CutMemory::counted, request.map.name,
                 ": room for ", entries,
                 " entries of tiles; the most is 2147483647, so give a smaller capacity");
  const std::int64_t blocks = options.tile_rows / kBlockRows;
  task.splits = options.splits;
  task.tile_rows = options.tile_rows;
  take_order(request, task, scratch);
  task.tile_capacity = tiles;
  task.entry_capacity = std::min(entries, kMostEntries);
  task.tile_site = status_site(request.map.name + ": tiles");
  task.entry_site = status_site(request.map.name + ": entries of tiles");

  scratch.block_mask = runner_.make<std::uint32_t>(tiles * blocks * task.map.words);
  scratch.tile_entries = runner_.make<std::int32_t>(tiles);
  scratch.entry_begin = runner_.make<std::int32_t>(tiles);
  task.block_mask = scratch.block_mask.data();
  task.tile_entries = scratch.tile_entries.data();
  task.entry_begin = scratch.entry_begin.data();

  scratch.is_centred = request.is_centred;
  cut.tile_order_ = runner_.make<TileRun>(tiles);
  cut.out_row_ = runner_.make<std::int32_t>(tiles * options.tile_rows);
  task.tile_order = cut.tile_order_.data();
  task.out_row = cut.out_row_.data();
  task.tile_count = cut.counts_.data();
  task.entry_count = cut.counts_.data() + 1;
  cut.tiles_ = {.tile_order = task.tile_order,
                .out_row = task.out_row,
                .tiles = {task.tile_count, tiles},
                .in_rows = request.map.in.rows,
                .out_rows = request.map.out.rows,
                .tile_rows = task.tile_rows,
                .offsets = task.map.relation.window.volume};
  if (memory_ == CutMemory::given) make_entries(task, cut, entries, request.is_centred);
}

void CutBatchBuilder::make_entries(CutTask& task, CutMap& cut, std::int64_t entries,
                                   bool is_centred) {
  cut.entry_ = runner_.make<TileEntry>(entries);
  cut.mirrored_ = runner_.make<TileEntry>(is_centred ? entries : 0);
  cut.in_row_ = runner_.make<std::int32_t>(entries * task.tile_rows);
  task.entry_capacity = entries;
  task.entry = cut.entry_.data();
  task.mirrored = cut.mirrored_.data();
  task.in_row = cut.in_row_.data();
  cut.entries_ = {task.entry_count, entries};
  cut.tiles_.entry = task.entry;
  cut.tiles_.in_row = task.in_row;
}

void CutBatchBuilder::add_pairs(const CutRequest& request, CutTask& task, CutMap& cut,
                                Scratch& scratch) {
  const std::int64_t volume = request.map.window->volume();
  const std::int64_t rows = request.map.out.rows.capacity;
  // No row of either side has an offset twice.
  const std::int64_t most = std::min(request.map.in.rows.capacity, rows) * volume;
  const std::int64_t pairs = request.pairs->pair_capacity > 0 ? request.pairs->pair_capacity : most;
  scratch.tile_pairs = runner_.make<std::uint32_t>(volume * ceil_of(rows, kPairThreads));
  cut.offset_begin_ = runner_.make<std::int64_t>(volume + 1);
  task.tile_pairs = scratch.tile_pairs.data();
  task.offset_begin = cut.offset_begin_.data();
  task.pair_count = cut.counts_.data() + 2;
  task.pair_capacity = pairs;
  task.pair_site = status_site(request.map.name + ": pairs");
  cut.pairs_ = {.offset_begin = task.offset_begin,
                .pairs = {task.pair_count, pairs},
                .offsets = task.map.relation.window.volume};
  if (memory_ == CutMemory::given) make_pairs(task, cut, pairs);
}

void CutBatchBuilder::make_pairs(CutTask& task, CutMap& cut, std::int64_t pairs) {
  cut.pair_in_ = runner_.make<std::int32_t>(pairs);
  cut.pair_out_ = runner_.make<std::int32_t>(pairs);
  task.pair_in = cut.pair_in_.data();
  task.pair_out = cut.pair_out_.data();
  task.pair_capacity = pairs;
  cut.pairs_.in = task.pair_in;
  cut.pairs_.out = task.pair_out;
  cut.pairs_.pairs.capacity = pairs;
}

void CutBatchBuilder::launch(const char* kernel, int threads, const BlocksOf& blocks) {
  launch_batch(runner_, formats_kernel(kernel), threads, batch_, blocks);
}

void CutBatchBuilder::write_keys(const char* kernel) {
  launch(kernel, kOrderThreads, [&](const CutTask& task) {
    // Also where there is no row: somebody has to say so.
    const std::int64_t capacity = std::max<std::int64_t>(out_of(task).rows.capacity, 1);
    return scratch_of(task).is_ordered_here ? ceil_of(capacity, kOrderThreads) : 0;
  });
}

template <class Key> void CutBatchBuilder::sort(RadixSort<Key>& sort) {
  std::vector<RowCountRef> rows;
  for (CutTask& task : tasks_of(batch_)) {
    if (!is_sorted_here(task)) continue;
    task.keys = sort.keys(rows.size());
    task.sorted = sort.sorted_values(rows.size());
    rows.insert(rows.end(), static_cast<std::size_t>(task.splits),
                {task.ordered_rows, out_of(task).rows.capacity});
  }
  write_keys(sizeof(Key) == 4 ? "gray_keys_u32" : "gray_keys_u64");
  sort.run(runner_, rows);
}

template <class Key> void CutBatchBuilder::search_and_sort(FillList& fill) {
  RadixSort<Key> sorting(runner_, rooms_, fill);
  fill.run(runner_);
  search_.launch();
  sort(sorting);
  const auto sorts =
      std::make_shared<std::array<Buffer<std::uint32_t>, 2>>(sorting.take_all_sorted_values());
  for (CutTask& task : tasks_of(batch_)) {
    if (!is_sorted_here(task)) continue;
    OrderedMap& order = *scratch_of(task).order;
    order.sorts = sorts;
    order.sorted = task.sorted;
  }
  for (CutTask& task : tasks_of(batch_))
    task.sorted = scratch_of(task).order->sorted;
}

bool CutBatchBuilder::any_tiles() const {
  return std::ranges::any_of(tasks_of(batch_), [](const CutTask& task) { return task.splits > 0; });
}

bool CutBatchBuilder::any_pairs() const {
  return std::ranges::any_of(tasks_of(batch_),
                             [](const CutTask& task) { return task.pair_count != nullptr; });
}

std::int64_t CutBatchBuilder::pair_tiles_of(const CutTask& task) const {
  return task.pair_count == nullptr ? 0 : ceil_of(out_of(task).rows.capacity, kPairThreads);
}

void CutBatchBuilder::plan_tiles() {
  if (!any_tiles()) return;
  launch("mask_tiles", kTileThreads, tiles_of);
  runner_.run(formats_kernel("plan_tiles"), {.blocks = tasks(), .threads = kPlanThreads}, batch_);
}

void CutBatchBuilder::fill_tiles() {
  if (any_tiles()) launch("fill_tiles", kTileThreads, tiles_of);
}

void CutBatchBuilder::count_pairs() {
  if (!any_pairs()) return;
  launch("count_pairs", kPairThreads, [&](const CutTask& task) { return pair_tiles_of(task); });
  launch("sum_pairs", kPairThreads, [](const CutTask& task) {
    return task.pair_count == nullptr ? 0 : std::int64_t{task.map.relation.window.volume};
  });
}

void CutBatchBuilder::write_pairs() {
  if (!any_pairs()) return;
  launch("write_pairs", kPairThreads, [&](const CutTask& task) { return pair_tiles_of(task); });
}

void CutBatchBuilder::search_and_order() {
  batch_.status = runner_.status();
  std::ranges::copy(search_.sets(), batch_.set);
  FillList fill;
  search_.zero(fill);
  const bool has_short_keys =
      std::ranges::all_of(rooms_, [](const SortRoom& room) { return room.bits <= 32; });
  if (rooms_.empty()) {
    fill.run(runner_);
    search_.launch();
    write_keys("gray_keys_u32");   // of maps whose outputs stay as they are, if any
  } else if (has_short_keys) {
    search_and_sort<std::uint32_t>(fill);
  } else {
    search_and_sort<std::uint64_t>(fill);
  }
}

std::vector<CutMap> CutBatchBuilder::build() {
  PUMICE_ENSURES(memory_ == CutMemory::given, "cuts are built before they are counted");
  search_and_order();
  plan_tiles();
  fill_tiles();
  count_pairs();
  write_pairs();
  return std::move(cuts_);
}

void CutBatchBuilder::count(CountReader& reader) {
  search_and_order();
  plan_tiles();
  count_pairs();
  for (const CutTask& task : tasks_of(batch_)) {
    Scratch& scratch = scratch_of(task);
    if (task.splits > 0) {
      scratch.tile_word = reader.add(task.tile_count);
      scratch.entry_word = reader.add(task.entry_count);
    }
    if (task.pair_count != nullptr) scratch.pair_word = reader.add(task.pair_count);
  }
}

bool CutBatchBuilder::fits(std::span<const std::int64_t> counts) const {
  return std::ranges::all_of(tasks_of(batch_), [&](const CutTask& task) {
    const Scratch& scratch = scratch_of(task);
    return (task.splits == 0 || (counts[scratch.tile_word] <= task.tile_capacity &&
                                 counts[scratch.entry_word] <= task.entry_capacity)) &&
           (task.pair_count == nullptr || counts[scratch.pair_word] <= task.pair_capacity);
  });
}

std::vector<CutMap> CutBatchBuilder::write(const KnownCounts& known) {
  for (std::size_t i = 0; i < cuts_.size(); ++i) {
    CutTask& task = batch_.task[i];
    CutMap& cut = cuts_[i];
    const Scratch& scratch = scratch_[i];
    if (task.splits > 0) {
      make_entries(task, cut, known.words[scratch.entry_word], scratch.is_centred);
      cut.tiles_.tiles.capacity = known.words[scratch.tile_word];
      cut.tiles_.in_rows = known.rows(cut.tiles_.in_rows);
      cut.tiles_.out_rows = known.rows(cut.tiles_.out_rows);
    }
    if (task.pair_count != nullptr) make_pairs(task, cut, known.words[scratch.pair_word]);
  }
  fill_tiles();
  write_pairs();
  return std::move(cuts_);
}

}   // namespace pumice::cuda
