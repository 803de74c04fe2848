// Lines of single entries where they lie; others slot by slot.
#include "kernels/cpu/part_rows.hpp"

#include <algorithm>

namespace pumice::cpu {
namespace {

struct Slots {
  std::int64_t begin, end;
};

/// Those of a line before its padding, which comes last.
Slots filled(const PartView& part, std::int64_t line) {
  const Slots slots{part.first_slot(line), part.end_slot(line)};
  const auto* const column = part.column.data();
  if (slots.end == slots.begin || column[slots.end - 1] >= 0) return slots;
  const auto* const end = std::partition_point(column + slots.begin, column + slots.end,
                                               [](std::int32_t number) { return number >= 0; });
  return {slots.begin, end - column};
}

/// Those of lines that follow each other in one part and are full but for the last, as those of a
/// long row are; `is_one` says whether they do.
struct Range {
  Slots slots{};
  bool is_one = false;
};
Range range_of(std::span<const PartView> parts, std::span<const PartLine> lines) {
  if (lines.empty() || lines.front().part != lines.back().part) return {};
  const PartView& part = parts[static_cast<std::size_t>(lines.front().part)];
  const std::int64_t first = lines.front().line, last = lines.back().line;
  if (!part.is_single || last - first + 1 != static_cast<std::int64_t>(lines.size())) return {};
  for (std::int64_t line = first; line < last; ++line) {
    const std::int64_t end = part.end_slot(line);
    if (end > part.first_slot(line) && part.column[static_cast<std::size_t>(end - 1)] < 0)
      return {};
  }
  return {{part.first_slot(first), filled(part, last).end}, true};
}

}   // namespace

void PartRows::find(std::int64_t row, EntryRow& to) {
  const std::span<const PartLine> lines = parts_.lines_of(row);
  const Range range = range_of(parts_.views(), lines);
  if (range.is_one && !(in_order_ && !parts_.place().empty())) {
    const PartView& part = parts_.views()[static_cast<std::size_t>(lines.front().part)];
    to.column = part.column.data() + range.slots.begin;
    to.number = part.entry.empty() ? nullptr : part.entry.data() + range.slots.begin;
    to.first = range.slots.begin;
    to.entries = to.listed = range.slots.end - range.slots.begin;
    if (!in_order_ || to.number == nullptr || std::is_sorted(to.number, to.number + to.entries))
      return;
  }
  column_.clear();
  number_.clear();
  for (const PartLine& line : lines)
    append(line);
  if (in_order_) put_in_order();
  to.column = column_.data();
  to.number = number_.data();
  to.first = 0;
  to.entries = to.listed = static_cast<std::int64_t>(column_.size());
}

void PartRows::append(const PartLine& line) {
  const PartView& part = parts_.views()[static_cast<std::size_t>(line.part)];
  const Slots slots = filled(part, line.line);
  if (part.is_single && !part.entry.empty()) {
    column_.insert(column_.end(), part.column.begin() + slots.begin,
                   part.column.begin() + slots.end);
    number_.insert(number_.end(), part.entry.begin() + slots.begin, part.entry.begin() + slots.end);
    return;
  }
  const std::int64_t wide = part.shape.block_columns;
  for (std::int64_t slot = slots.begin; slot < slots.end; ++slot) {
    const std::int64_t block = part.column[static_cast<std::size_t>(slot)];
    const std::int64_t position = slot * part.shape.positions() + line.row_of_block * wide;
    for (std::int64_t j = 0; j < wide; ++j) {
      const std::int64_t number = part.number_at(position + j);
      if (number < 0) continue;
      column_.push_back(static_cast<std::int32_t>(block * wide + j));
      number_.push_back(number);
    }
  }
}

void PartRows::put_in_order() {
  const std::span<const std::int64_t> place = parts_.place();
  const auto place_of = [&](std::int64_t number) {
    return place.empty() ? number : place[static_cast<std::size_t>(number)];
  };
  const auto goes_before = [&](std::int64_t a, std::int64_t b) {
    return place_of(a) < place_of(b);
  };
  if (std::ranges::is_sorted(number_, goes_before)) return;
  found_.clear();
  for (std::size_t i = 0; i < number_.size(); ++i)
    found_.push_back({place_of(number_[i]), number_[i], column_[i]});
  std::ranges::sort(found_, {}, &Found::place);
  for (std::size_t i = 0; i < found_.size(); ++i) {
    number_[i] = found_[i].number;
    column_[i] = found_[i].column;
  }
}

}   // namespace pumice::cpu
