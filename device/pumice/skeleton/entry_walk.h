// Which entries a team of threads takes: a row, or a part of a long one.
//
//   item 0 … rows − 1        rows, long ones left out
//   item rows …              parts of long rows
#pragma once

#include <pumice/platform.h>
#include <pumice/shared/entry_spec.h>
#include <pumice/shared/pattern_ref.h>

namespace pumice {

struct EntryRange {
  int64_t row = 0;
  int64_t begin = 0;   // of the range
  int64_t end = 0;
  int64_t entries = 0;   // of the whole row
  int64_t part = -1;     // its number among all parts; -1: the whole row
  bool is_left_out = false;
};

PUMICE_DEVICE int64_t entry_items(const PatternRef& pattern) {
  return pattern.rows + (pattern.long_rows.counts == nullptr ? 0 : pattern.long_rows.counts[0]);
}

PUMICE_DEVICE EntryRange range_of_item(const PatternRef& pattern, int64_t item) {
  EntryRange range;
  int64_t first = 0;
  range.row = item;
  if (item >= pattern.rows) {
    range.part = item - pattern.rows;
    const RowPart part = pattern.long_rows.part[range.part];
    range.row = part.row;
    first = part.part * kPartEntries;
  }
  const int64_t begin = pattern.row_begin[range.row], end = pattern.row_begin[range.row + 1];
  range.entries = end - begin;
  range.begin = begin + first;
  range.end = end;
  if (range.part >= 0) {
    if (range.end > range.begin + kPartEntries) range.end = range.begin + kPartEntries;
  } else {
    range.is_left_out = pattern.long_rows.counts != nullptr && range.entries > kPartEntries;
  }
  return range;
}

PUMICE_DEVICE int64_t number_of_entry(const PatternRef& pattern, int64_t place) {
  return pattern.number == nullptr ? place : pattern.number[place];
}

}   // namespace pumice
