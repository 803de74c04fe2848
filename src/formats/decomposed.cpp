// Lists the lines of each row, and makes patterns of parts.
#include <pumice/formats/decomposed.hpp>

#include <algorithm>
#include <ostream>
#include <utility>

#include <pumice/core/error.hpp>

#include "formats/part_positions.hpp"

namespace pumice {
namespace {

/// On a device too, where nobody reads it here.
template <class T> std::span<const T> list_of(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {tensor.data<T>(), static_cast<std::size_t>(tensor.elements())};
}

/// As errors name a part.
struct PartName {
  std::size_t part;
  friend std::ostream& operator<<(std::ostream& out, const PartName& name) {
    return out << "Decomposed: part " << name.part;
  }
};

void check_bounds(std::span<const std::int64_t> bounds, std::int64_t end, const PartName& name,
                  const char* list) {
  std::int64_t before = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    PUMICE_EXPECTS(bounds[i] >= before && bounds[i] <= end && (i > 0 || bounds[i] == 0), name, ": ",
                   list, '[', i, "] = ", bounds[i], " after ", before, ": bounds ascend from 0 to ",
                   end);
    before = bounds[i];
  }
  PUMICE_EXPECTS(before == end, name, ": ", list, " ends at ", before, ": give ", end, ", the end");
}

void check_lists(const PartView& part, std::int64_t rows, const PartName& name) {
  const PartShape& shape = part.shape;
  check_shape(shape, name.part, "Decomposed");
  if (shape.width > 0) {
    PUMICE_EXPECTS(part.slot_begin.empty() && part.slots() == part.lines() * shape.width, name,
                   " has ", part.slots(), " slots for ", part.lines(), " lines of width ",
                   shape.width, part.slot_begin.empty() ? "" : " and bounds of lines",
                   ": give as many as lines · width, and no bounds");
  } else {
    PUMICE_EXPECTS(static_cast<std::int64_t>(part.slot_begin.size()) == part.lines() + 1, name,
                   " has ", part.slot_begin.size(), " bounds for ", part.lines(),
                   " lines: give one more than lines, or a width");
    check_bounds(part.slot_begin, part.slots(), name, "slot_begin");
  }
  const auto positions = static_cast<std::size_t>(part.slots() * shape.positions());
  PUMICE_EXPECTS(part.entry.empty() || part.entry.size() == positions, name, " has ",
                 part.entry.size(), " numbers of entries for ", part.slots(), " slots of ",
                 shape.positions(), " positions: give ", positions);
  if (!part.type_begin.empty()) check_bounds(part.type_begin, part.lines(), name, "type_begin");
  const std::int64_t block_rows = (rows + shape.block_rows - 1) / shape.block_rows;
  for (std::size_t line = 0; line < part.row.size(); ++line)
    PUMICE_EXPECTS(part.row[line] >= 0 && part.row[line] < block_rows, name, ": row[", line,
                   "] = ", part.row[line], " where there are ", block_rows,
                   ": give numbers from 0 on");
}

bool is_single(const PartView& part) {
  if (part.shape.positions() != 1) return false;
  for (std::size_t slot = 0; slot < part.entry.size(); ++slot)
    if (part.entry[slot] < 0 && part.column[slot] >= 0) return false;
  return true;
}

}   // namespace

PartView Part::view() const& {
  return {.shape = shape,
          .row = list_of<std::int32_t>(row),
          .slot_begin = list_of<std::int64_t>(slot_begin),
          .column = list_of<std::int32_t>(column),
          .entry = list_of<std::int64_t>(entry),
          .type_begin = list_of<std::int64_t>(type_begin)};
}

Decomposed::Decomposed(DecomposedLists lists) : lists_(std::move(lists)) {
  for (const Part& part : lists_.parts)
    views_.push_back(part.view());
  PUMICE_EXPECTS(lists_.row_begin.size() == lists_.rows + 1,
                 "Decomposed: ", lists_.row_begin.size(), " bounds of ", lists_.rows,
                 " rows: give one more than rows");
  for (std::size_t part = 0; part < views_.size(); ++part) {
    check_lists(views_[part], lists_.rows, {part});
    views_[part].is_single = is_single(views_[part]);
    PUMICE_EXPECTS(!views_[part].entry.empty() || views_.size() == 1 || views_[part].slots() == 0,
                   PartName{part}, " of ", views_.size(),
                   " has no numbers of entries: these are places where there is one part alone");
  }
  list_lines();
}

Decomposed::Decomposed(DecomposedLists lists, PartTable table)
    : lists_(std::move(lists)), table_(std::move(table)) {
  PUMICE_ENSURES(device().kind == DeviceKind::cuda, "a table of parts on ", to_string(device()));
  for (const Part& part : lists_.parts)
    views_.push_back(part.view());
}

PartTableRef Decomposed::table() const {
  PartTableRef table = table_.ref;
  table.row_begin = lists_.row_begin.data();
  table.place = lists_.place.size() > 0 ? lists_.place.data() : nullptr;
  return table;
}

void Decomposed::list_lines() {
  const auto for_lines = [&](auto&& body) {
    for (std::size_t part = 0; part < views_.size(); ++part) {
      const PartView& view = views_[part];
      for (std::int64_t line = 0; line < view.lines(); ++line) {
        const std::int64_t first = view.row[static_cast<std::size_t>(line)] * view.shape.block_rows;
        const std::int64_t rows = std::min(view.shape.block_rows, lists_.rows - first);
        for (std::int64_t i = 0; i < rows; ++i)
          body(first + i,
               PartLine{static_cast<std::int32_t>(part), static_cast<std::int32_t>(i), line});
      }
    }
  };
  line_begin_ = Buffer<std::int64_t>(lists_.rows + 1);
  std::fill_n(line_begin_.data(), line_begin_.size(), 0);
  for_lines([&](std::int64_t row, const PartLine&) { ++line_begin_[row + 1]; });
  for (std::int64_t row = 0; row < lists_.rows; ++row)
    line_begin_[row + 1] += line_begin_[row];
  lines_ = Buffer<PartLine>(line_begin_[lists_.rows]);
  Buffer<std::int64_t> next(lists_.rows);
  std::copy_n(line_begin_.data(), lists_.rows, next.data());
  for_lines([&](std::int64_t row, const PartLine& line) { lines_[next[row]++] = line; });
}

Csr csr(const Decomposed& decomposed) {
  if (decomposed.device().kind != DeviceKind::cpu) {
    const Csr here = csr(copy_to_host(decomposed, decomposed.stream()));
    return copy_to(decomposed.stream(), here.view());
  }
  const std::span<const std::int64_t> place = decomposed.place();
  Tensor row({decomposed.entries()}, DType::i32), column({decomposed.entries()}, DType::i32);
  const auto rows = row.span<std::int32_t>(), columns = column.span<std::int32_t>();
  for (const PartView& part : decomposed.views()) {
    for_positions(part, [&](std::int64_t, std::int64_t number, std::int64_t r, std::int64_t c) {
      if (number < 0) return;
      const auto at = static_cast<std::size_t>(number);
      const std::size_t to = place.empty() ? at : static_cast<std::size_t>(place[at]);
      rows[to] = static_cast<std::int32_t>(r);
      columns[to] = static_cast<std::int32_t>(c);
    });
  }
  if (place.empty()) return Csr(decomposed.rows(), decomposed.columns(), row, column);
  PatternLists lists{.row_begin = Buffer<std::int64_t>(decomposed.rows() + 1),
                     .column = Buffer<std::int32_t>(decomposed.entries()),
                     .entry = Buffer<std::int64_t>(decomposed.entries()),
                     .part = {},
                     .long_row = {},
                     .long_counts = {}};
  std::ranges::copy(decomposed.row_begin(), lists.row_begin.data());
  std::ranges::copy(columns, lists.column.data());
  for (std::int64_t number = 0; number < decomposed.entries(); ++number)
    lists.entry[place[static_cast<std::size_t>(number)]] = number;
  return Csr(decomposed.rows(), decomposed.columns(), Device{}, std::move(lists));
}

}   // namespace pumice
