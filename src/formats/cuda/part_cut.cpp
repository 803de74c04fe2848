// Launches, sorts and sums between the kernels of formats/part_cut.h.
#include "formats/cuda/part_cut.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include <pumice/formats/part_cut_arguments.h>
#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>

#include "coords/cuda/fill_list.hpp"
#include "coords/cuda/radix_sort.hpp"
#include "core/cuda/status.hpp"
#include "formats/cuda/part_table.hpp"
#include "formats/cuda/sources.hpp"
#include "formats/cut_checks.hpp"
#include "formats/flat_parts.hpp"
#include "formats/part_positions.hpp"
#include "graphs/cuda/balance.hpp"

namespace pumice::cuda {
namespace {

constexpr std::int64_t kMostKeys = std::int64_t{1} << 62;

jit::LaunchShape thread_each(std::int64_t items) {
  return {.blocks = (items + kPartThreads - 1) / kPartThreads, .threads = kPartThreads};
}

int bits_for(std::int64_t limit) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(limit)));
}

template <class T> Buffer<T> uploaded(jit::KernelRunner& runner, const std::vector<T>& list) {
  auto made = runner.make<T>(static_cast<std::int64_t>(list.size()));
  if (!list.empty())
    copy_async(made.data(), runner.stream().device, list.data(), Device{}, made.bytes(),
               runner.stream());
  return made;
}

Buffer<std::int32_t> rows_of_places(jit::KernelRunner& runner, const CsrView& pattern) {
  auto row = runner.make<std::int32_t>(pattern.entries());
  runner.run(
      formats_kernel("list_rows"), thread_each(pattern.entries()),
      PlaceArguments{
          .pattern = pattern_ref(pattern), .entries = pattern.entries(), .of_place = row.data()});
  return row;
}

Buffer<std::int32_t> checked(jit::KernelRunner& runner, const CsrView& pattern,
                             ConstTensorView given, std::int64_t limit, bool by_number,
                             const std::string& name) {
  auto made = runner.make<std::int32_t>(pattern.entries());
  runner.run(formats_kernel("check_given"), thread_each(pattern.entries()),
             PlaceArguments{.pattern = pattern_ref(pattern),
                            .entries = pattern.entries(),
                            .given = {.number = given.raw(),
                                      .limit = limit,
                                      .status = runner.status(),
                                      .site = status_site(name),
                                      .is_wide = given.dtype() == DType::i64},
                            .by_number = by_number ? 1 : 0,
                            .of_place = made.data()});
  return made;
}

/// Places by number, where the order within some row is another; see DecomposedLists.
struct NumberPlaces {
  Buffer<std::int64_t> place;
  Buffer<std::int64_t> is_disordered;   // [1]

  NumberPlaces(jit::KernelRunner& runner, const CsrView& pattern) {
    if (pattern.entry.empty()) return;
    place = runner.make<std::int64_t>(pattern.entries());
    is_disordered = runner.make<std::int64_t>(1);
    fill_bytes_async(is_disordered.data(), std::byte{0}, sizeof(std::int64_t), runner.stream());
    runner.run(formats_kernel("list_places"), thread_each(pattern.entries()),
               PlaceArguments{.pattern = pattern_ref(pattern),
                              .entries = pattern.entries(),
                              .place = place.data(),
                              .is_disordered = is_disordered.data()});
  }
  /// Waits.
  Buffer<std::int64_t> taken(StreamView stream) {
    if (place.size() == 0 || copy_to_host(is_disordered, stream)[0] == 0) return {};
    return std::move(place);
  }
};

class PartCut {
 public:
  PartCut(jit::KernelRunner& runner, const CsrView& pattern, std::span<const PartShape> shapes,
          const PartAssignment& assignment, const char* op)
      : runner_(runner),
        pattern_(pattern),
        shapes_(shapes),
        types_(assignment.types),
        op_(op),
        row_(rows_of_places(runner, pattern)) {
    a_.pattern = pattern_ref(pattern);
    a_.entries = pattern.entries();
    a_.row_of = row_.data();
    if (shapes.size() > 1) a_.part_of = assignment.part.data();
    if (types_ > 0) a_.type_of = assignment.type.data();
    a_.parts = static_cast<std::int32_t>(shapes.size());
    a_.types = std::max<std::int64_t>(types_, 1);
    a_.row_span = std::max<std::int64_t>(pattern.rows, 1);
    list_shapes();
    PUMICE_EXPECTS(items() <= kMostItemsOfCut, op, ": ", items(),
                   " entries, and rows that have a line of their own; on a device the most is ",
                   kMostItemsOfCut, ": cut the pattern on the CPU");
    PUMICE_EXPECTS(a_.types <= kMostKeys / a_.row_span / std::max(a_.parts, 1), op, ": ", a_.parts,
                   " parts of ", a_.types, " types of ", pattern.rows,
                   " rows; on a device these are 2^62 lines at the most: cut the pattern on the "
                   "CPU");
  }

  FlatParts made() {
    upload_shapes();
    sort();
    CountedList runs(runner_, items()), slots(runner_, items());
    fill_bytes_async(slots.counts(), std::byte{0},
                     static_cast<std::size_t>(items()) * sizeof(std::uint32_t), runner_.stream());
    a_.begins_run = runs.counts();
    a_.slots = slots.counts();
    run("count_slots", items());
    runs.sum(runner_);
    slots.sum(runner_);
    a_.run_before = runs.before();
    a_.slot_before = slots.before();
    auto run_begin = runner_.make<std::int64_t>(items() + 1);
    a_.run_begin = run_begin.data();
    run("list_runs", items() + 1);
    CountedList lines(runner_, items()), padded(runner_, items());
    a_.run_lines = lines.counts();
    a_.run_slots = padded.counts();
    run("size_runs", items());
    lines.sum(runner_);
    padded.sum(runner_);
    a_.line_before = lines.before();
    a_.padded_before = padded.before();
    return filled(sizes());
  }

 private:
  std::int64_t items() const { return a_.line_items + a_.entries; }
  void run(const char* kernel, std::int64_t threads) {
    runner_.run(formats_kernel(kernel), thread_each(threads), a_);
  }

  void list_shapes() {
    for (const PartShape& shape : shapes_) {
      const auto number = [](std::int64_t of) { return static_cast<std::int32_t>(of); };
      has_blocks_ = has_blocks_ || shape.positions() > 1;
      shape_.push_back({.block_rows = number(shape.block_rows),
                        .block_columns = number(shape.block_columns),
                        .width = number(shape.width),
                        .multiple = number(shape.multiple),
                        .all_rows = shape.all_rows ? 1 : 0,
                        .first_line_item = a_.line_items});
      if (shape.all_rows)
        a_.line_items += a_.types * ((pattern_.rows + shape.block_rows - 1) / shape.block_rows);
    }
  }
  void upload_shapes() {
    shapes_there_ = uploaded(runner_, shape_);
    a_.shape = shapes_there_.data();
  }

  /// Entries of one part without types and blocks are sorted as they are.
  void sort() {
    if (items() == 0 || (shapes_.size() <= 1 && types_ <= 1 && !has_blocks_ && a_.line_items == 0))
      return;
    FillList fill;
    if (has_blocks_) {
      std::int64_t most = 0;
      for (const PartShape& shape : shapes_)
        if (shape.positions() > 1)
          most = std::max(most, (pattern_.columns / shape.block_columns + 1) * shape.positions());
      blocks_.emplace(runner_, SortRoom{items(), bits_for(most + 1)}, fill);
    }
    lines_.emplace(runner_, SortRoom{items(), bits_for(a_.parts * a_.types * a_.row_span)}, fill);
    fill.run(runner_);
    if (has_blocks_) {
      a_.key = blocks_->keys();
      run("key_blocks", items());
      blocks_->run(runner_, {nullptr, items()});
      a_.order = blocks_->sorted_values();
      copy_async(lines_->values(), runner_.stream().device, a_.order, runner_.stream().device,
                 static_cast<std::size_t>(items()) * sizeof(std::uint32_t), runner_.stream());
    }
    a_.key = lines_->keys();
    run("key_lines", items());
    lines_->run(runner_, {nullptr, items()});
    a_.sorted = lines_->sorted_keys();
    a_.order = lines_->sorted_values();
  }

  /// Waits.
  std::vector<FlatPart> sizes() {
    auto there = runner_.make<std::int64_t>(2 * (std::int64_t{a_.parts} + 1));
    a_.sizes = there.data();
    run("bound_cut", a_.parts + 1);
    const std::vector<std::int64_t> before = copy_to_host(there, runner_.stream());
    std::vector<FlatPart> parts;
    for (std::size_t part = 0; part < shapes_.size(); ++part) {
      const std::int64_t lines = before[2 * part + 2] - before[2 * part];
      const std::int64_t slots = before[2 * part + 3] - before[2 * part + 1];
      check_padding(slots, shapes_[part], pattern_.entries(), op_);
      parts.push_back({shapes_[part], lines, slots});
    }
    return parts;
  }

  FlatParts filled(std::vector<FlatPart> parts) {
    std::int64_t line = 0, slot = 0, position = 0, begin = 0;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      CutShape& shape = shape_[part];
      shape.first_line = line;
      shape.first_slot = slot;
      shape.first_position = position;
      shape.first_begin = begin;
      line += parts[part].lines;
      slot += parts[part].slots;
      position += parts[part].slots * parts[part].shape.positions();
      if (parts[part].shape.width == 0) begin += parts[part].lines + 1;
    }
    upload_shapes();
    FlatParts flat(std::move(parts), true, types_, runner_.stream());
    fill_ones(flat.column);
    fill_ones(flat.entry);
    a_.row = flat.row.data<std::int32_t>();
    a_.slot_begin = flat.slot_begin.data<std::int64_t>();
    a_.column = flat.column.data<std::int32_t>();
    a_.entry = flat.entry.data<std::int64_t>();
    a_.type_begin = types_ > 0 ? flat.type_begin.data<std::int64_t>() : nullptr;
    run("fill_lines", items());
    run("fill_slots", items());
    run("bound_lists", a_.parts * (a_.types + 1));
    return flat;
  }
  /// −1 everywhere.
  void fill_ones(Tensor& list) {
    if (list.elements() > 0)
      fill_bytes_async(list.raw(), std::byte{0xff}, list.bytes(), runner_.stream());
  }

  jit::KernelRunner& runner_;
  const CsrView& pattern_;
  std::span<const PartShape> shapes_;
  std::int64_t types_;
  const char* op_;
  Buffer<std::int32_t> row_;
  CutArguments a_{};
  bool has_blocks_ = false;
  std::vector<CutShape> shape_;
  Buffer<CutShape> shapes_there_;
  std::optional<RadixSort<std::uint64_t>> blocks_, lines_;
};

}   // namespace

Buffer<std::int32_t> types_by_place(jit::KernelRunner& runner, const CsrView& pattern,
                                    const formats::EdgeTypes& types, const char* op) {
  check_types(pattern, types, op);
  if (!types.type.defined()) return {};
  return checked(runner, pattern, types.type, types.count, true, std::string(op) + ": types");
}

Buffer<std::int32_t> parts_by_place(jit::KernelRunner& runner, const CsrView& pattern,
                                    ConstTensorView part, std::int64_t parts, const char* op) {
  return checked(runner, pattern, part, parts, false, std::string(op) + ": parts");
}

Buffer<std::int32_t> hyb_parts(jit::KernelRunner& runner, const CsrView& pattern,
                               const formats::HybOptions& options, const Buffer<std::int32_t>& type,
                               std::int64_t types) {
  const std::int64_t entries = pattern.entries();
  auto part = runner.make<std::int32_t>(entries);
  if (entries == 0) return part;
  const Buffer<std::int32_t> row = rows_of_places(runner, pattern);
  const Buffer<std::int64_t> width = uploaded(runner, options.widths);
  BucketArguments a{.pattern = pattern_ref(pattern),
                    .entries = entries,
                    .row_of = row.data(),
                    .type_of = types > 0 ? type.data() : nullptr,
                    .types = std::max<std::int64_t>(types, 1),
                    .share = std::max<std::int64_t>(
                        (pattern.columns + options.column_parts - 1) / options.column_parts, 1),
                    .width = width.data(),
                    .widths = width.size(),
                    .part = part.data()};
  std::optional<RadixSort<std::uint64_t>> sort;
  if (options.column_parts > 1 || types > 1) {
    PUMICE_EXPECTS(a.types <= kMostKeys / pattern.rows / options.column_parts,
                   "hyb: ", options.column_parts, " column parts of ", a.types, " types of ",
                   pattern.rows,
                   " rows; on a device these are 2^62 runs at the most: cut the pattern on the "
                   "CPU");
    FillList fill;
    sort.emplace(runner, SortRoom{entries, bits_for(options.column_parts * a.types * pattern.rows)},
                 fill);
    fill.run(runner);
    a.key = sort->keys();
    runner.run(formats_kernel("key_shares"), thread_each(entries), a);
    sort->run(runner, {nullptr, entries});
    a.sorted = sort->sorted_keys();
    a.order = sort->sorted_values();
  }
  runner.run(formats_kernel("bucket_entries"), thread_each(entries), a);
  return part;
}

RowMeasures measure_rows(jit::KernelRunner& runner, const CsrView& pattern) {
  constexpr std::int64_t kMostBlocks = 256;   // which walk on: two additions of all each
  auto found = runner.make<std::uint64_t>(2);
  fill_bytes_async(found.data(), std::byte{0}, found.bytes(), runner.stream());
  jit::LaunchShape shape = thread_each(pattern.rows);
  shape.blocks = std::min(shape.blocks, kMostBlocks);
  runner.run(
      formats_kernel("measure_rows"), shape,
      MeasureArguments{
          .row_begin = pattern.row_begin.data(), .rows = pattern.rows, .found = found.data()});
  const std::vector<std::uint64_t> numbers = copy_to_host(found, runner.stream());
  return {static_cast<std::int64_t>(numbers[0]), static_cast<std::int64_t>(numbers[1])};
}

Decomposed cut(jit::KernelRunner& runner, const CsrView& pattern, std::span<const PartShape> shapes,
               const PartAssignment& assignment, const char* op) {
  for (std::size_t part = 0; part < shapes.size(); ++part)
    check_shape(shapes[part], part, op);
  check_parts(shapes, pattern, op);
  NumberPlaces places(runner, pattern);
  const FlatParts flat = PartCut(runner, pattern, shapes, assignment, op).made();
  DecomposedLists lists{pattern.rows,
                        pattern.columns,
                        pattern.entries(),
                        flat.parts(),
                        runner.make<std::int64_t>(pattern.rows + 1),
                        places.taken(runner.stream())};
  copy_async(lists.row_begin.data(), runner.stream().device, pattern.row_begin.data(),
             runner.stream().device, pattern.row_begin.size_bytes(), runner.stream());
  PartTable table;
  if (std::ranges::all_of(shapes, [](const PartShape& shape) { return shape.positions() == 1; }))
    table = part_table(runner, flat, pattern.rows);
  return {std::move(lists), std::move(table)};
}

}   // namespace pumice::cuda
