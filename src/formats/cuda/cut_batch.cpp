// Tasks, memory and launches of a batch of cuts.
#include "formats/cuda/cut_batch.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <pumice/grid/look_back.h>
#include <pumice/shared/tile_map.h>
#include <pumice/core/cuda.hpp>
#include <pumice/core/error.hpp>

#include "core/cuda/status.hpp"
#include "formats/cuda/sources.hpp"
#include "maps/cuda/batch_launch.hpp"

namespace pumice::cuda {
namespace {

int split_key_bits(std::int64_t volume, int splits) {
  return static_cast<int>(std::min<std::int64_t>(ceil_of(volume, splits), kMaskKeyBits));
}

std::int64_t tiles_of(const TileOptions& options, std::int64_t rows) {
  return options.splits * ceil_of(rows, options.tile_rows);
}

/// Words of 64 bits that tiles look back at, and their ticket.
std::int64_t tile_sum_words(std::int64_t tiles) {
  return tiles + 1;
}

/// The same of pairs, whose sums have 32 bits.
std::int64_t pair_sum_words(std::int64_t tiles, std::int64_t volume) {
  return ceil_of(tiles * volume + 1, 2);
}

}   // namespace

std::int64_t zeroed_bytes(std::span<const CutRequest> requests) {
  std::int64_t bytes = 0;
  const auto add = [&](std::int64_t words, std::size_t size) {
    constexpr auto kStep = static_cast<std::int64_t>(kCudaAlignment);
    bytes += ceil_of(words * static_cast<std::int64_t>(size), kStep) * kStep;
  };
  for (const CutRequest& request : requests) {
    const std::int64_t volume = request.map.window->volume();
    const std::int64_t rows = request.map.out.rows.capacity;
    add(volume, sizeof(std::uint32_t));
    if (request.tiles) {
      const TileOptions& options = *request.tiles;
      add(tile_sum_words(tiles_of(options, rows)), sizeof(std::uint64_t));
      const SortRoom room{rows, split_key_bits(volume, options.splits)};
      if (options.sort_by_mask) add(options.splits * sort_sum_words(room), sizeof(std::uint32_t));
    }
    if (request.pairs)
      add(pair_sum_words(ceil_of(rows, kPairThreads), volume), sizeof(std::uint64_t));
  }
  return bytes;
}

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
  if (request.pairs) add_pairs(request, task, cut);
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
  const std::int64_t tiles = tiles_of(options, request.map.out.rows.capacity);
  const std::int64_t entries =
      options.entry_capacity > 0 ? options.entry_capacity : tiles * ceil_of(volume, options.splits);
  constexpr std::int64_t kMostEntries = std::numeric_limits<std::int32_t>::max();
  PUMICE_EXPECTS(entries <= kMostEntries || memory_ == CutMemory::counted, request.map.name,
                 ": room for ", entries,
                 " entries of tiles; the most is 2147483647, so give a smaller capacity");
  task.splits = options.splits;
  task.tile_rows = options.tile_rows;
  take_order(request, task, scratch);
  task.tile_capacity = tiles;
  task.entry_capacity = std::min(entries, kMostEntries);
  task.entry_site = status_site(request.map.name + ": entries of tiles");

  scratch.is_centred = request.is_centred;
  cut.tile_order_ = runner_.make<TileRun>(tiles);
  task.tile_order = cut.tile_order_.data();
  task.tile_count = cut.counts_.data();
  task.entry_count = cut.counts_.data() + 1;
  cut.tiles_ = {.tile_order = task.tile_order,
                .tiles = {task.tile_count, tiles},
                .in_rows = request.map.in.rows,
                .out_rows = request.map.out.rows,
                .tile_rows = task.tile_rows,
                .offsets = task.map.relation.window.volume};
  if (memory_ == CutMemory::given) make_tiles(task, cut, tiles, entries, request.is_centred);
}

/// Memory for all of tiles but their order, which is made while they are counted.
void CutBatchBuilder::make_tiles(CutTask& task, CutMap& cut, std::int64_t tiles,
                                 std::int64_t entries, bool is_centred) {
  cut.out_row_ = runner_.make<std::int32_t>(tiles * task.tile_rows);
  cut.entry_ = runner_.make<TileEntry>(entries);
  cut.mirrored_ = runner_.make<TileEntry>(is_centred ? entries : 0);
  cut.in_row_ = runner_.make<std::int32_t>(entries * task.tile_rows);
  task.tile_capacity = tiles;
  task.entry_capacity = entries;
  task.out_row = cut.out_row_.data();
  task.entry = cut.entry_.data();
  task.mirrored = cut.mirrored_.data();
  task.in_row = cut.in_row_.data();
  cut.entries_ = {task.entry_count, entries};
  cut.tiles_.tiles.capacity = tiles;
  cut.tiles_.out_row = task.out_row;
  cut.tiles_.entry = task.entry;
  cut.tiles_.in_row = task.in_row;
}

void CutBatchBuilder::add_pairs(const CutRequest& request, CutTask& task, CutMap& cut) {
  const std::int64_t volume = request.map.window->volume();
  const std::int64_t rows = request.map.out.rows.capacity;
  PUMICE_EXPECTS(rows <= kMostTileSum, request.map.name, ": pairs of ", rows,
                 " rows; on a device the most is ", kMostTileSum, ", so take a smaller batch");
  // No row of either side has an offset twice.
  const std::int64_t most = std::min(request.map.in.rows.capacity, rows) * volume;
  const std::int64_t pairs = request.pairs->pair_capacity > 0 ? request.pairs->pair_capacity : most;
  cut.offset_begin_ = runner_.make<std::int64_t>(volume + 1);
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

std::int64_t CutBatchBuilder::tiles_of_pairs(const CutTask& task) const {
  return ceil_of(out_of(task).rows.capacity, kPairThreads);
}

void CutBatchBuilder::take_sums() {
  const auto tile_words = [](const CutTask& task) {
    return task.splits == 0 ? 0 : tile_sum_words(task.tile_capacity);
  };
  const auto volume = [](const CutTask& task) { return task.map.relation.window.volume; };
  const auto pair_words = [&](const CutTask& task) {
    return task.pair_count == nullptr ? 0 : pair_sum_words(tiles_of_pairs(task), volume(task));
  };
  std::int64_t words = 0;
  for (const CutTask& task : tasks_of(batch_))
    words += tile_words(task) + pair_words(task);
  sums_ = fill_.zeros<std::uint64_t>(runner_, words);
  std::uint64_t* next = sums_.data();
  for (CutTask& task : tasks_of(batch_)) {
    task.tile_sums = next;
    task.tile_ticket = reinterpret_cast<std::uint32_t*>(next + task.tile_capacity);
    next += tile_words(task);
    task.pair_sums = reinterpret_cast<std::uint32_t*>(next);
    task.pair_ticket = task.pair_sums + tiles_of_pairs(task) * volume(task);
    next += pair_words(task);
  }
}

void CutBatchBuilder::write_keys(const char* kernel) {
  launch(kernel, kOrderThreads, [&](const CutTask& task) {
    // Also where there is no row: somebody has to say so.
    const std::int64_t capacity = std::max<std::int64_t>(out_of(task).rows.capacity, 1);
    return scratch_of(task).is_ordered_here ? task.splits * ceil_of(capacity, kOrderRows) : 0;
  });
}

template <class Key> void CutBatchBuilder::sort(RadixSort<Key>& sort) {
  std::vector<RowCountRef> rows;
  for (CutTask& task : tasks_of(batch_)) {
    if (!is_sorted_here(task)) continue;
    task.keys = sort.keys(rows.size());
    task.sorted = sort.sorted_values(rows.size());
    for (std::size_t split = 0; split < static_cast<std::size_t>(task.splits); ++split)
      task.totals[split] = sort.counted_by_caller(rows.size() + split);
    rows.insert(rows.end(), static_cast<std::size_t>(task.splits),
                {task.ordered_rows, out_of(task).rows.capacity});
  }
  write_keys(sizeof(Key) == 4 ? "gray_keys_u32" : "gray_keys_u64");
  sort.run(runner_, rows);
}

template <class Key> void CutBatchBuilder::search_and_sort() {
  RadixSort<Key> sorting(runner_, rooms_, fill_);
  fill_.run(runner_);
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

void CutBatchBuilder::cut_tiles() {
  launch("cut_tiles", kTileThreads,
         [](const CutTask& task) { return task.splits == 0 ? 0 : task.tile_capacity + 1; });
}

template <class RowsOf> void CutBatchBuilder::list_pairs(const RowsOf& rows) {
  launch("list_pairs", kPairThreads, [&](const CutTask& task) {
    return task.pair_count == nullptr
               ? 0
               : std::max<std::int64_t>(ceil_of(rows(out_of(task).rows).capacity, kPairThreads), 1);
  });
}

void CutBatchBuilder::search_and_order() {
  batch_.status = runner_.status();
  std::ranges::copy(search_.sets(), batch_.set);
  take_sums();
  const bool has_short_keys =
      std::ranges::all_of(rooms_, [](const SortRoom& room) { return room.bits <= 32; });
  if (rooms_.empty()) {
    fill_.run(runner_);
    search_.launch();
    write_keys("gray_keys_u32");   // of maps whose outputs stay as they are, if any
  } else if (has_short_keys) {
    search_and_sort<std::uint32_t>();
  } else {
    search_and_sort<std::uint64_t>();
  }
}

std::vector<CutMap> CutBatchBuilder::build() {
  PUMICE_ENSURES(memory_ == CutMemory::given, "cuts are built before they are counted");
  search_and_order();
  cut_tiles();
  list_pairs([](const RowCountRef& rows) { return rows; });
  return std::move(cuts_);
}

void CutBatchBuilder::count(CountReader& reader) {
  PUMICE_ENSURES(memory_ == CutMemory::counted, "cuts are counted that have their memory");
  search_and_order();
  cut_tiles();   // without memory for entries: what there is, and in which order
  launch("count_pairs", kPairThreads,
         [](const CutTask& task) { return task.pair_count == nullptr ? 0 : 1; });
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
  PUMICE_ENSURES(fits(known.words), "cuts are written whose counts do not fit");
  for (std::size_t i = 0; i < cuts_.size(); ++i) {
    CutTask& task = batch_.task[i];
    CutMap& cut = cuts_[i];
    const Scratch& scratch = scratch_[i];
    if (task.splits > 0) {
      make_tiles(task, cut, known.words[scratch.tile_word], known.words[scratch.entry_word],
                 scratch.is_centred);
      cut.tiles_.in_rows = known.rows(cut.tiles_.in_rows);
      cut.tiles_.out_rows = known.rows(cut.tiles_.out_rows);
    }
    if (task.pair_count != nullptr) make_pairs(task, cut, known.words[scratch.pair_word]);
  }
  launch("write_tiles", kTileThreads,
         [](const CutTask& task) { return task.splits == 0 ? 0 : task.tile_capacity; });
  list_pairs(known.rows);
  return std::move(cuts_);
}

}   // namespace pumice::cuda
