// Lines become pieces, pieces are sorted by row, and ranges of them are cut into items.
#include "formats/cuda/part_table.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include <pumice/formats/part_table_arguments.h>
#include <pumice/grid/scan_arguments.h>
#include <pumice/core/copy.hpp>
#include <pumice/core/cuda.hpp>
#include <pumice/core/error.hpp>

#include "coords/cuda/fill_list.hpp"
#include "coords/cuda/radix_sort.hpp"
#include "formats/cuda/sources.hpp"

namespace pumice::cuda {
namespace {

constexpr std::int64_t kMostPieces = (std::int64_t{1} << 30) - 1;   // of a sort
/// As runs of rows of a whole pattern, see kernels/cuda/entry_launch.cpp.
constexpr std::int64_t kUnitsOfStart = 32;
constexpr std::int64_t kMostUnits = 64;

std::int64_t blocks_for(std::int64_t items) {
  return (items + kPartThreads - 1) / kPartThreads;
}

jit::LaunchShape thread_each(std::int64_t items) {
  return {.blocks = blocks_for(items), .threads = kPartThreads};
}

/// Where the lists of each part begin; `is_cut` of those with lines longer than a piece, or maybe.
std::vector<PartLines> lines_of(const FlatParts& flat) {
  std::vector<PartLines> made;
  std::int64_t line = 0, slot = 0, begin = 0;
  for (const FlatPart& part : flat.part) {
    const bool has_width = part.shape.width > 0;
    made.push_back({.first_line = line,
                    .first_slot = slot,
                    .first_begin = has_width ? -1 : begin,
                    .width = static_cast<std::int32_t>(part.shape.width),
                    .is_cut = !has_width || part.shape.width > kPieceSlots ? 1 : 0});
    line += part.lines;
    slot += part.slots;
    if (!has_width) begin += part.lines + 1;
  }
  return made;
}

template <class T> Buffer<T> uploaded(jit::KernelRunner& runner, const std::vector<T>& list) {
  auto made = runner.make<T>(static_cast<std::int64_t>(list.size()));
  copy_async(made.data(), runner.stream().device, list.data(), Device{}, made.bytes(),
             runner.stream());
  return made;
}

class Pieces {
 public:
  Pieces(jit::KernelRunner& runner, const FlatParts& flat)
      : runner_(runner), flat_(flat), part_(lines_of(flat)) {
    for (std::size_t i = 0; i < part_.size(); ++i)
      is_cut_ = is_cut_ || (part_[i].is_cut != 0 && flat.part[i].lines > 0);
    if (is_cut_) {
      list();
    } else {
      for (std::size_t i = 0; i < part_.size(); ++i)
        part_[i].first_piece = part_[i].first_line;
      pieces_ = flat.row.rows();
    }
    PUMICE_EXPECTS(pieces_ <= kMostPieces, "parts of ", pieces_, " lines; on a device the most is ",
                   kMostPieces, ": give wider ones, or fewer rows");
  }

  std::int64_t count() const { return pieces_; }
  bool is_cut() const { return is_cut_; }
  const std::vector<PartLines>& parts() const { return part_; }
  Buffer<std::int64_t> begin;   // of pieces, of parts that are cut
  Buffer<std::int32_t> row;     // empty where nothing is cut: lines are pieces

 private:
  void list() {
    PieceArguments a{.parts = static_cast<std::int32_t>(part_.size()),
                     .lines = flat_.row.rows(),
                     .row = flat_.row.data<std::int32_t>(),
                     .slot_begin = flat_.slot_begin.data<std::int64_t>()};
    Buffer<PartLines> part = uploaded(runner_, part_);
    CountedList lines(runner_, a.lines);
    auto part_piece = runner_.make<std::int64_t>(a.parts + 1);
    a.part = part.data();
    a.pieces = lines.counts();
    a.piece_before = lines.before();
    a.part_piece = part_piece.data();
    runner_.run(formats_kernel("count_pieces"), thread_each(a.lines), a);
    lines.sum(runner_);
    runner_.run(formats_kernel("bound_parts"), thread_each(a.parts + 1), a);
    const std::vector<std::int64_t> before = copy_to_host(part_piece, runner_.stream());
    std::int64_t bound = 0;
    for (std::size_t i = 0; i < part_.size(); ++i) {
      part_[i].first_piece = before[i];
      if (part_[i].is_cut == 0) continue;
      part_[i].first_bound = bound;
      bound += before[i + 1] - before[i] + 1;
    }
    pieces_ = before.back();
    begin = runner_.make<std::int64_t>(bound);
    row = runner_.make<std::int32_t>(pieces_);
    part = uploaded(runner_, part_);
    a.part = part.data();
    a.piece_row = row.data();
    a.piece_begin = begin.data();
    runner_.run(formats_kernel("list_pieces"), thread_each(a.lines), a);
  }

  jit::KernelRunner& runner_;
  const FlatParts& flat_;
  std::vector<PartLines> part_;
  std::int64_t pieces_ = 0;
  bool is_cut_ = false;
};

/// Fills target, shared_row and their counts.
std::int64_t share(jit::KernelRunner& runner, const std::int32_t* row, std::int64_t pieces,
                   std::int64_t rows, PartTable& table) {
  FillList fill;
  RadixSort<std::uint32_t> sort(
      runner, {pieces, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows)))}, fill);
  auto states = runner.make<std::uint64_t>(blocks_for(pieces) + blocks_for(rows) + 1);
  auto counts = runner.make<std::int64_t>(3);
  fill.add(states, 0);
  fill.add(counts, 0);
  fill.run(runner);
  copy_async(sort.keys(), runner.stream().device, row, runner.stream().device,
             static_cast<std::size_t>(pieces) * sizeof(std::int32_t), runner.stream());
  sort.run(runner, {nullptr, pieces});
  table.target = runner.make<std::int32_t>(pieces + rows);
  table.shared_row = runner.make<LongRow>(pieces / 2);
  const ShareArguments a{
      .sorted_row = sort.sorted_keys(),
      .sorted_piece = sort.sorted_values(),
      .pieces = pieces,
      .rows = rows,
      .target = table.target.data(),
      .shared_row = table.shared_row.data(),
      .counts = counts.data(),
      .states = states.data(),
      .bare_states = states.data() + blocks_for(pieces),
      .tickets = reinterpret_cast<std::uint32_t*>(states.data() + states.size() - 1)};
  runner.run(formats_kernel("share_rows"), thread_each(pieces), a);
  runner.run(formats_kernel("list_bare_rows"), thread_each(rows), a);
  const std::vector<std::int64_t> found = copy_to_host(counts, runner.stream());
  table.ref.partials = found[0];
  table.ref.shared_rows = found[1];
  return found[2];
}

/// Slots and pieces of an item: as runs of a whole pattern are.
std::int64_t work_of_item(std::int64_t work, StreamView stream) {
  const auto units = static_cast<double>(work) / kUnitWork;
  const int multiprocessors = cuda_device_info(stream.device.index).multiprocessors;
  const double best = std::sqrt(units / static_cast<double>(kUnitsOfStart * multiprocessors));
  return kUnitWork * std::clamp<std::int64_t>(static_cast<std::int64_t>(best), 1, kMostUnits);
}

std::vector<PartRange> ranges_of(const FlatParts& flat, const Pieces& pieces, std::int64_t bare,
                                 StreamView stream, PartTableRef& ref) {
  const std::int64_t work = work_of_item(flat.column.rows() + pieces.count() + bare, stream);
  std::vector<PartRange> ranges;
  std::int64_t item = 0;
  const auto add = [&](PartRange range, std::int64_t slots) {
    if (range.pieces == 0) return;
    const std::int64_t of_piece = slots / range.pieces + 1;
    range.pieces_of_item = static_cast<std::int32_t>(std::max<std::int64_t>(work / of_piece, 1));
    range.first_item = item;
    item += (range.pieces + range.pieces_of_item - 1) / range.pieces_of_item;
    ranges.push_back(range);
  };
  for (std::size_t i = 0; i < flat.part.size(); ++i) {
    const PartLines& part = pieces.parts()[i];
    const std::int64_t end =
        i + 1 < flat.part.size() ? pieces.parts()[i + 1].first_piece : pieces.count();
    add({.first_piece = part.first_piece,
         .pieces = end - part.first_piece,
         .first_slot = part.first_slot,
         .first_bound = part.first_bound,
         .width = part.width},
        flat.part[i].slots);
  }
  ref.slot_items = item;
  add({.first_piece = pieces.count(), .pieces = bare}, 0);
  ref.items = item;
  ref.ranges = static_cast<std::int32_t>(ranges.size());
  return ranges;
}

}   // namespace

CountedList::CountedList(jit::KernelRunner& runner, std::int64_t size)
    : count_(runner.make<std::uint32_t>(size)), before_(runner.make<std::int64_t>(size + 1)) {}

void CountedList::sum(jit::KernelRunner& runner) {
  const std::int64_t tiles = size() / kScanTile + 1;   // of size + 1 sums
  auto states = runner.make<std::uint64_t>(tiles + 1);
  FillList fill;
  fill.add(states, 0);
  fill.run(runner);
  runner.run(formats_kernel("scan_counts"), {.blocks = tiles, .threads = kScanThreads},
             ScanArguments{.count = count_.data(),
                           .size = size(),
                           .before = before_.data(),
                           .states = states.data(),
                           .ticket = reinterpret_cast<std::uint32_t*>(states.data() + tiles)});
}

PartTable part_table(jit::KernelRunner& runner, const FlatParts& flat, std::int64_t rows) {
  PartTable table;
  Pieces pieces(runner, flat);
  const std::int32_t* const row =
      pieces.is_cut() ? pieces.row.data() : flat.row.data<std::int32_t>();
  const std::int64_t bare = share(runner, row, pieces.count(), rows, table);
  const std::vector<PartRange> ranges = ranges_of(flat, pieces, bare, runner.stream(), table.ref);
  table.range = uploaded(runner, ranges);
  table.piece_begin = std::move(pieces.begin);
  table.row = std::move(pieces.row);
  table.ref.range = table.range.data();
  table.ref.piece_begin = table.piece_begin.data();
  table.ref.row = row;
  table.ref.target = table.target.data();
  table.ref.column = flat.column.data<std::int32_t>();
  table.ref.number = flat.entry.defined() ? flat.entry.data<std::int64_t>() : nullptr;
  table.ref.shared_row = table.shared_row.data();
  return table;
}

}   // namespace pumice::cuda
