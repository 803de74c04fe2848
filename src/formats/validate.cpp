// Looks at every position of what a pattern was cut into. Covers validate of decomposed.hpp.
#include <algorithm>
#include <vector>

#include <pumice/core/error.hpp>
#include <pumice/formats/decomposed.hpp>

#include "formats/part_positions.hpp"

namespace pumice {
namespace {

void check_order(const PartView& part, std::size_t number, const char* op) {
  for (std::int64_t line = 0; line < part.lines(); ++line) {
    const auto at = static_cast<std::size_t>(line);
    const bool begins_type = line == 0 || std::ranges::binary_search(part.type_begin, line);
    PUMICE_EXPECTS(begins_type || part.row[at] >= part.row[at - 1], op, ": part ", number, ": row[",
                   line, "] = ", part.row[at], " after ", part.row[at - 1],
                   ": rows ascend, within each type where there are types");
    bool is_padded = false;
    for (std::int64_t slot = part.first_slot(line); slot < part.end_slot(line); ++slot) {
      const std::int32_t column = part.column[static_cast<std::size_t>(slot)];
      PUMICE_EXPECTS(column >= -1 && !(is_padded && column >= 0), op, ": part ", number,
                     ": column[", slot, "] = ", column,
                     column < -1 ? ": give numbers from 0 on, -1 for padding"
                                 : " after padding: padding comes last in a line");
      is_padded = column < 0;
    }
  }
}

/// check(part, position, number, row, column) for every entry, after what is asked of all.
template <class Check>
void check_entries(const Decomposed& decomposed, const char* op, Check&& check) {
  std::vector<bool> seen(static_cast<std::size_t>(decomposed.entries()));
  std::vector<std::int64_t> found(static_cast<std::size_t>(decomposed.rows()));
  for (std::size_t at = 0; at < decomposed.views().size(); ++at) {
    const PartView& part = decomposed.views()[at];
    check_order(part, at, op);
    for_positions(part, [&](std::int64_t position, std::int64_t number, std::int64_t row,
                            std::int64_t column) {
      if (number == -1) return;
      PUMICE_EXPECTS(number >= 0 && number < decomposed.entries(), op, ": part ", at, ": entry[",
                     position, "] = ", number, " where there are ", decomposed.entries(),
                     " entries: give numbers from 0 on, -1 for a hole");
      PUMICE_EXPECTS(column >= 0, op, ": part ", at, ": entry[", position, "] = ", number,
                     " in a slot of padding: give -1 there, or the slot a column");
      PUMICE_EXPECTS(row < decomposed.rows() && column < decomposed.columns(), op, ": part ", at,
                     ": entry[", position, "] = ", number, " at row ", row, " and column ", column,
                     " of ", decomposed.rows(), " x ", decomposed.columns(),
                     ": give -1 beyond the pattern");
      PUMICE_EXPECTS(!seen[static_cast<std::size_t>(number)], op, ": part ", at, ": entry[",
                     position, "] = ", number, " stands twice: give each entry one position");
      seen[static_cast<std::size_t>(number)] = true;
      ++found[static_cast<std::size_t>(row)];
      check(at, position, number, row, column);
    });
  }
  for (std::size_t number = 0; number < seen.size(); ++number)
    PUMICE_EXPECTS(seen[number], op, ": entry ", number, " of ", seen.size(),
                   " is in no part: give each entry one position");
  const std::span<const std::int64_t> begin = decomposed.row_begin();
  for (std::size_t row = 0; row < found.size(); ++row)
    PUMICE_EXPECTS(found[row] == begin[row + 1] - begin[row], op, ": row ", row, " has ",
                   found[row], " entries and ", begin[row + 1] - begin[row],
                   " in the pattern: give it all of its entries");
}

}   // namespace

void validate(const Decomposed& decomposed, const char* op) {
  if (decomposed.device().kind != DeviceKind::cpu)
    return validate(copy_to_host(decomposed, decomposed.stream()), op);
  check_entries(decomposed, op, [](auto...) {});
}

void validate(const Decomposed& decomposed, const CsrView& pattern, const char* op) {
  PUMICE_EXPECTS(decomposed.device() == pattern.device, op, ": the parts are on ",
                 to_string(decomposed.device()), " and the pattern on ", to_string(pattern.device),
                 ": give both of one device");
  if (decomposed.device().kind != DeviceKind::cpu) {
    const Csr here = copy_to_host(pattern, decomposed.stream());
    return validate(copy_to_host(decomposed, decomposed.stream()), here.view(), op);
  }
  check_pattern(pattern, op);
  PUMICE_EXPECTS(decomposed.rows() == pattern.rows && decomposed.columns() == pattern.columns &&
                     decomposed.entries() == pattern.entries(),
                 op, ": ", decomposed.rows(), " x ", decomposed.columns(), " with ",
                 decomposed.entries(), " entries, of a pattern of ", pattern.rows, " x ",
                 pattern.columns, " with ", pattern.entries(),
                 ": give the pattern it was cut from");
  struct Place {
    std::int32_t row, column;
  };
  std::vector<Place> places(static_cast<std::size_t>(pattern.entries()));
  for (std::int64_t row = 0; row < pattern.rows; ++row)
    for (std::int64_t place = pattern.begin_of(row); place < pattern.end_of(row); ++place)
      places[static_cast<std::size_t>(pattern.number_of(place))] = {
          static_cast<std::int32_t>(row), pattern.column[static_cast<std::size_t>(place)]};
  check_entries(decomposed, op,
                [&](std::size_t part, std::int64_t position, std::int64_t number, std::int64_t row,
                    std::int64_t column) {
                  const Place& of = places[static_cast<std::size_t>(number)];
                  PUMICE_EXPECTS(of.row == row && of.column == column, op, ": part ", part,
                                 ": entry[", position, "] = ", number, " at row ", row,
                                 " and column ", column, ", which the pattern has at row ", of.row,
                                 " and column ", of.column, ": give it its row and column");
                });
}

}   // namespace pumice
