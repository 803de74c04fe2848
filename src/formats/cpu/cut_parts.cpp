// Entries are sorted by counting: by type, by part, and within a part of blocks by column of blocks
// and row of blocks. Then lines are runs of entries, counted in a first pass and filled in a
// second.
#include "formats/cpu/cut_parts.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <pumice/core/error.hpp>

#include "formats/cpu/sorted_places.hpp"
#include "formats/cut_checks.hpp"
#include "formats/part_positions.hpp"
#include "graphs/entry_numbers.hpp"

namespace pumice::cpu {
namespace {

constexpr std::int64_t round_up(std::int64_t number, std::int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

/// A pattern, and what is looked up by place.
struct Source {
  const CsrView& pattern;
  const Buffer<std::int32_t>& row;
  const Buffer<std::int32_t>& type;
  std::int64_t types;
  const char* op;

  std::int64_t column_of(std::int64_t place) const {
    return pattern.column[static_cast<std::size_t>(place)];
  }
  std::int64_t type_of(std::int64_t place) const { return type.size() == 0 ? 0 : type[place]; }
};

/// One part: lines of entries that are sorted by type, row of blocks and column of blocks.
class PartCut {
 public:
  PartCut(const Source& source, const PartShape& shape, std::span<const std::int64_t> places)
      : source_(source),
        shape_(shape),
        places_(places),
        copies_(shape.positions() == 1 ? 0 : static_cast<std::size_t>(shape.positions())) {}

  Part made() {
    std::int64_t lines = 0, slots = 0;
    for_runs([&](std::int64_t, std::int64_t, std::span<const std::int64_t> run) {
      const std::int64_t needed = round_up(slots_of(run, [](auto...) {}), step());
      const std::int64_t own = lines_of(needed);
      lines += own;
      slots += shape_.width > 0 ? own * shape_.width : needed;
      check_padding(slots, shape_, source_.pattern.entries(), source_.op);
    });
    Part part{.shape = shape_,
              .row = Tensor({lines}, DType::i32),
              .slot_begin = shape_.width > 0 ? Tensor() : Tensor({lines + 1}, DType::i64),
              .column = Tensor::full({slots}, DType::i32, -1),
              .entry = Tensor::full({slots * shape_.positions()}, DType::i64, -1),
              .type_begin = source_.types > 0 ? Tensor({source_.types + 1}, DType::i64) : Tensor()};
    fill(part);
    return part;
  }

 private:
  std::int64_t step() const { return shape_.width > 0 ? shape_.width : shape_.multiple; }
  std::int64_t lines_of(std::int64_t slots) const {
    if (shape_.width == 0) return 1;
    return std::max<std::int64_t>(slots / shape_.width, shape_.all_rows ? 1 : 0);
  }
  std::int64_t block_row(std::int64_t place) const {
    return source_.row[place] / shape_.block_rows;
  }
  std::int64_t block_column(std::int64_t place) const {
    return source_.column_of(place) / shape_.block_columns;
  }

  /// body(type, row of blocks, places) for each run that has lines.
  template <class Body> void for_runs(Body&& body) const {
    const std::size_t size = places_.size();
    const std::int64_t block_rows =
        round_up(source_.pattern.rows, shape_.block_rows) / shape_.block_rows;
    std::size_t at = 0;
    for (std::int64_t type = 0; type < std::max<std::int64_t>(source_.types, 1); ++type) {
      const auto is_of = [&](std::int64_t row) {
        return at < size && source_.type_of(places_[at]) == type &&
               (row < 0 || block_row(places_[at]) == row);
      };
      const auto run_of = [&](std::int64_t row) {
        const std::size_t begin = at;
        while (is_of(row))
          ++at;
        body(type, row, places_.subspan(begin, at - begin));
      };
      if (shape_.all_rows) {
        for (std::int64_t row = 0; row < block_rows; ++row)
          run_of(row);
      } else {
        while (is_of(-1))
          run_of(block_row(places_[at]));
      }
    }
  }

  /// How many slots the entries of a run take; body(slot, position in it, place) for each of them.
  /// A further entry of the same row and column is in a further slot.
  template <class Body> std::int64_t slots_of(std::span<const std::int64_t> run, Body&& body) {
    if (copies_.empty()) {
      for (std::size_t i = 0; i < run.size(); ++i)
        body(static_cast<std::int64_t>(i), std::int64_t{0}, run[i]);
      return static_cast<std::int64_t>(run.size());
    }
    std::int64_t first = 0;
    for (std::size_t begin = 0; begin < run.size();) {
      std::size_t end = begin;
      std::int32_t most = 0;
      for (; end < run.size() && block_column(run[end]) == block_column(run[begin]); ++end) {
        const std::int64_t position = position_of(run[end]);
        std::int32_t& copies = copies_[static_cast<std::size_t>(position)];
        body(first + copies, position, run[end]);
        most = std::max(most, ++copies);
      }
      for (std::size_t i = begin; i < end; ++i)
        copies_[static_cast<std::size_t>(position_of(run[i]))] = 0;
      first += most;
      begin = end;
    }
    return first;
  }

  std::int64_t position_of(std::int64_t place) const {
    return source_.row[place] % shape_.block_rows * shape_.block_columns +
           source_.column_of(place) % shape_.block_columns;
  }

  void fill(Part& part) {
    std::int32_t* const row = part.row.data<std::int32_t>();
    std::int32_t* const column = part.column.data<std::int32_t>();
    std::int64_t* const entry = part.entry.data<std::int64_t>();
    std::int64_t* const begin =
        part.slot_begin.defined() ? part.slot_begin.data<std::int64_t>() : nullptr;
    std::vector<std::int64_t> lines_of_type(static_cast<std::size_t>(source_.types) + 1);
    std::int64_t line = 0, slot = 0;
    for_runs([&](std::int64_t type, std::int64_t of, std::span<const std::int64_t> run) {
      const std::int64_t needed =
          slots_of(run, [&](std::int64_t at, std::int64_t position, std::int64_t place) {
            column[slot + at] = static_cast<std::int32_t>(block_column(place));
            entry[(slot + at) * shape_.positions() + position] = source_.pattern.number_of(place);
          });
      const std::int64_t padded = round_up(needed, step());
      const std::int64_t own = lines_of(padded);
      if (begin != nullptr) begin[line] = slot;
      std::fill_n(row + line, own, static_cast<std::int32_t>(of));
      line += own;
      slot += shape_.width > 0 ? own * shape_.width : padded;
      if (source_.types > 0) lines_of_type[static_cast<std::size_t>(type) + 1] += own;
    });
    if (begin != nullptr) begin[line] = slot;
    if (source_.types == 0) return;
    for (std::size_t type = 1; type < lines_of_type.size(); ++type)
      lines_of_type[type] += lines_of_type[type - 1];
    std::ranges::copy(lines_of_type, part.type_begin.data<std::int64_t>());
  }

  const Source& source_;
  const PartShape& shape_;
  std::span<const std::int64_t> places_;
  std::vector<std::int32_t> copies_;   // of each position of a block, in the slots at hand
};

/// By number, where the order within some row is another; else empty.
Buffer<std::int64_t> places_by_number(const CsrView& pattern) {
  bool ascends = true;
  for (std::int64_t row = 0; row < pattern.rows && ascends && !pattern.entry.empty(); ++row)
    ascends = std::is_sorted(pattern.entry.begin() + pattern.begin_of(row),
                             pattern.entry.begin() + pattern.end_of(row));
  if (ascends) return {};
  Buffer<std::int64_t> places(pattern.entries());
  for (std::int64_t place = 0; place < pattern.entries(); ++place)
    places[pattern.number_of(place)] = place;
  return places;
}

}   // namespace

Buffer<std::int32_t> types_by_place(const CsrView& pattern, const formats::EdgeTypes& types,
                                    const char* op) {
  check_types(pattern, types, op);
  if (!types.type.defined()) return {};
  Buffer<std::int32_t> made(pattern.entries());
  with_numbers(types.type, [&](auto type) {
    check_numbers(type, types.count, op, "types");
    for (std::int64_t place = 0; place < made.size(); ++place)
      made[place] =
          static_cast<std::int32_t>(type[static_cast<std::size_t>(pattern.number_of(place))]);
  });
  return made;
}

Buffer<std::int32_t> rows_of_places(const CsrView& pattern) {
  Buffer<std::int32_t> made(pattern.entries());
  for (std::int64_t row = 0; row < pattern.rows; ++row)
    std::fill(made.data() + pattern.begin_of(row), made.data() + pattern.end_of(row),
              static_cast<std::int32_t>(row));
  return made;
}

DecomposedLists lists_of(const CsrView& pattern, std::vector<Part> parts) {
  DecomposedLists lists{pattern.rows,
                        pattern.columns,
                        pattern.entries(),
                        std::move(parts),
                        Buffer<std::int64_t>(pattern.rows + 1),
                        places_by_number(pattern)};
  std::ranges::copy(pattern.row_begin, lists.row_begin.data());
  return lists;
}

Decomposed cut(const CsrView& pattern, std::span<const PartShape> shapes,
               const Assignment& assignment, const char* op) {
  for (std::size_t part = 0; part < shapes.size(); ++part)
    check_shape(shapes[part], part, op);
  check_parts(shapes, pattern, op);
  const Buffer<std::int32_t> row = rows_of_places(pattern);
  const Source source{pattern, row, assignment.type, assignment.types, op};
  Buffer<std::int64_t> places = all_places(pattern.entries());
  const auto type_of = [&](std::int64_t place) { return source.type_of(place); };
  if (source.types > 1) sort_by(places, source.types, type_of);
  std::vector<std::int64_t> begin{0, pattern.entries()};
  if (assignment.part.size() > 0 && shapes.size() > 1) {
    const auto bounds = sort_by(places, static_cast<std::int64_t>(shapes.size()),
                                [&](std::int64_t place) { return assignment.part[place]; });
    begin.assign(bounds.span().begin(), bounds.span().end());
  }
  begin.resize(shapes.size() + 1, pattern.entries());
  std::vector<Part> parts;
  for (std::size_t part = 0; part < shapes.size(); ++part) {
    const PartShape& shape = shapes[part];
    const std::span<const std::int64_t> of = std::as_const(places).span().subspan(
        static_cast<std::size_t>(begin[part]),
        static_cast<std::size_t>(begin[part + 1] - begin[part]));
    if (shape.positions() == 1) {
      parts.push_back(PartCut(source, shape, of).made());
      continue;
    }
    Buffer<std::int64_t> blocks(static_cast<std::int64_t>(of.size()));
    std::ranges::copy(of, blocks.data());
    sort_by(blocks, pattern.columns / shape.block_columns + 1,
            [&](std::int64_t place) { return source.column_of(place) / shape.block_columns; });
    sort_by(blocks, pattern.rows / shape.block_rows + 1,
            [&](std::int64_t place) { return row[place] / shape.block_rows; });
    if (source.types > 1) sort_by(blocks, source.types, type_of);
    parts.push_back(PartCut(source, shape, std::as_const(blocks).span()).made());
  }
  return Decomposed(lists_of(pattern, std::move(parts)));
}

}   // namespace pumice::cpu
