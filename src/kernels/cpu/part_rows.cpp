// Lines of single entries where they lie; others slot by slot.
#include "kernels/cpu/part_rows.hpp"

#include <algorithm>

namespace pumice::cpu {

void PartRows::find(std::int64_t row, EntryRow& to) {
  const std::span<const PartLine> lines = parts_.lines_of(row);
  const std::span<const std::int64_t> place = parts_.place();
  if (lines.size() == 1 && !(in_order_ && !place.empty())) {
    const PartView& part = parts_.views()[static_cast<std::size_t>(lines[0].part)];
    if (part.shape.positions() == 1) {
      const std::int64_t begin = part.first_slot(lines[0].line);
      std::int64_t end = part.end_slot(lines[0].line);
      while (end > begin && part.column[static_cast<std::size_t>(end - 1)] < 0)
        --end;
      const auto is_ordered = [&] {
        return part.entry.empty() ||
               std::is_sorted(part.entry.begin() + begin, part.entry.begin() + end);
      };
      const bool has_holes = !part.entry.empty() && end > begin &&
                             std::find(part.entry.begin() + begin, part.entry.begin() + end, -1) !=
                                 part.entry.begin() + end;
      if (!has_holes && (!in_order_ || is_ordered())) {
        to.column = part.column.data() + begin;
        to.number = part.entry.empty() ? nullptr : part.entry.data() + begin;
        to.first = begin;
        to.entries = end - begin;
        return;
      }
    }
  }
  column_.clear();
  number_.clear();
  for (const PartLine& line : lines)
    append(line);
  if (in_order_) put_in_order();
  to.column = column_.data();
  to.number = number_.data();
  to.first = 0;
  to.entries = static_cast<std::int64_t>(column_.size());
}

void PartRows::append(const PartLine& line) {
  const PartView& part = parts_.views()[static_cast<std::size_t>(line.part)];
  const std::int64_t wide = part.shape.block_columns;
  const std::int64_t end = part.end_slot(line.line);
  for (std::int64_t slot = part.first_slot(line.line); slot < end; ++slot) {
    const std::int64_t block = part.column[static_cast<std::size_t>(slot)];
    if (block < 0) break;
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
