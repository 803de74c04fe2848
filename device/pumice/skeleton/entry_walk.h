// Which entries a team of threads takes.
//
//   ranges: items 0 … rows − 1 are rows, but for long ones; the others are parts of long rows
//   runs:   rows beside each other that have about as many entries as those of other runs, long
//           ones passed over; or a part of a long row
//   windows: as many rows and entries as a warp has threads; rows begin and end anywhere
#pragma once

#include <pumice/platform.h>
#include <pumice/shared/entry_spec.h>
#include <pumice/shared/pattern_ref.h>
#include <pumice/thread/search.h>

namespace pumice {

struct EntryRange {
  int64_t row = 0;
  int64_t begin = 0;   // of the range
  int64_t end = 0;
  int64_t entries = 0;   // of the whole row
  int64_t part = -1;     // its number among all parts; -1: the whole row
  bool is_left_out = false;
};

PUMICE_DEVICE int64_t part_count(const PatternRef& pattern) {
  return pattern.long_rows.counts == nullptr ? 0 : pattern.long_rows.counts[0];
}

PUMICE_DEVICE bool is_long_row(const PatternRef& pattern, int64_t entries) {
  return pattern.long_rows.counts != nullptr && entries > pattern.long_rows.part_entries;
}

PUMICE_DEVICE int64_t entry_items(const PatternRef& pattern) {
  return pattern.rows + part_count(pattern);
}

PUMICE_DEVICE EntryRange range_of_item(const PatternRef& pattern, int64_t item) {
  const int64_t part_entries = pattern.long_rows.part_entries;
  EntryRange range;
  int64_t first = 0;
  range.row = item;
  if (item >= pattern.rows) {
    range.part = item - pattern.rows;
    const RowPart part = pattern.long_rows.part[range.part];
    range.row = part.row;
    first = part.part * part_entries;
  }
  const int64_t begin = pattern.row_begin[range.row], end = pattern.row_begin[range.row + 1];
  range.entries = end - begin;
  range.begin = begin + first;
  range.end = end;
  if (range.part >= 0) {
    if (range.end > range.begin + part_entries) range.end = range.begin + part_entries;
  } else {
    range.is_left_out = is_long_row(pattern, range.entries);
  }
  return range;
}

/// Rows [row, end_row) and their entries [place, end), or a part of row `row`.
struct EntryRun {
  int64_t row = 0;
  int64_t end_row = 0;
  int64_t place = 0;
  int64_t end = 0;
  int64_t part = -1;   // its number among all parts; -1: whole rows
};

/// `units`: of a run.
PUMICE_DEVICE int64_t entry_runs(const PatternRef& pattern, int32_t units) {
  return pattern.unit_row == nullptr ? pattern.rows : (pattern.units + units - 1) / units;
}

PUMICE_DEVICE EntryRun run_of_item(const PatternRef& pattern, int64_t item, int32_t units) {
  EntryRun run;
  if (pattern.unit_row == nullptr) {
    run.row = item;
    run.end_row = item + 1;
  } else {
    const int64_t first = item * units, last = first + units;
    run.row = pattern.unit_row[first];
    run.end_row = pattern.unit_row[last < pattern.units ? last : pattern.units];
  }
  run.place = pattern.row_begin[run.row];
  run.end = pattern.row_begin[run.end_row];
  return run;
}

PUMICE_DEVICE EntryRun part_of_item(const PatternRef& pattern, int64_t item) {
  const RowPart part = pattern.long_rows.part[item];
  const int64_t part_entries = pattern.long_rows.part_entries;
  EntryRun run;
  run.part = item;
  run.row = part.row;
  run.end_row = run.row + 1;
  run.place = pattern.row_begin[run.row] + part.part * part_entries;
  run.end = pattern.row_begin[run.end_row];
  if (run.end > run.place + part_entries) run.end = run.place + part_entries;
  return run;
}

/// Where a run is: at which entry, of which row. Counted from `base` on, which fits 32 bits since
/// long rows are passed over; half of the registers that places would take.
struct EntryCursor {
  static constexpr int32_t kFar = kMostWholeRow;   // beyond all that is summed from one base

  const PatternRef& pattern;
  int64_t base;
  int32_t at = 0;      // the entry
  int32_t end;         // of the run
  int32_t row;         // that the entry is of, or that comes before it
  int32_t end_row;     // of the run
  int32_t row_first;   // entry of the row
  int32_t row_end;
  int32_t next_end;   // of the row after it, on its way while this one is summed
  int32_t longest;    // row that is taken as a whole

  PUMICE_DEVICE EntryCursor(const PatternRef& of, const EntryRun& run)
      : pattern(of),
        base(run.place),
        row(static_cast<int32_t>(run.row)),
        end_row(static_cast<int32_t>(run.end_row)),
        row_first(0) {
    end = near(run.end);
    row_end = next_end = longest = kFar;   // no row ends within a part
    if (run.part >= 0) return;
    if (pattern.long_rows.counts != nullptr) longest = pattern.long_rows.part_entries;
    row_end = near(pattern.row_begin[row < end_row ? row + 1 : end_row]);
    read_next();
  }

  PUMICE_DEVICE int32_t near(int64_t place) const {
    const int64_t from = place - base;
    return from < kFar ? static_cast<int32_t>(from) : kFar;
  }
  PUMICE_DEVICE void read_next() {
    next_end = near(pattern.row_begin[row + 2 < end_row ? row + 2 : end_row]);
  }
  /// A long row, whose parts are runs by themselves.
  PUMICE_DEVICE bool is_left_out() const { return row_end - row_first > longest; }
  PUMICE_DEVICE void next_row() {
    ++row;
    row_first = row_end;
    row_end = next_end;
    read_next();
  }
  /// To the row after a long one.
  PUMICE_DEVICE void pass_over() {
    const int64_t bound = pattern.row_begin[end_row];
    base = pattern.row_begin[row + 1];
    ++row;
    at = row_first = 0;
    end = near(bound);
    row_end = near(pattern.row_begin[row < end_row ? row + 1 : end_row]);
    read_next();
  }
};

/// The first row with row_begin[row] + row >= work, a multiple of kUnitWork, or the number of rows.
PUMICE_DEVICE int64_t row_of_work(const PatternRef& pattern, int64_t work) {
  if (pattern.unit_row != nullptr) {
    const int64_t unit = work / kUnitWork;
    return pattern.unit_row[unit < pattern.units ? unit : pattern.units];
  }
  return first_not_below([&](int64_t row) { return pattern.row_begin[row] + row; }, pattern.rows,
                         work);
}

/// Entries beside each other, up to one for each lane of a warp. If rows and entries are put into
/// one list, each row before its entries, a window is 32 elements of it: windows take as long as
/// each other whatever rows are like, and which rows begin in one is read from the units of work.
struct EntryWindow {
  int64_t place = 0;    // of the first entry
  int32_t count = 0;    // of entries; 0 and less: none
  int32_t row = 0;      // of the entry of this lane; beyond `count`, of the last one
  int32_t column = 0;   // the same
};

/// Window number `number`. The whole warp calls.
PUMICE_DEVICE EntryWindow window_of(const PatternRef& pattern, int64_t number) {
  const int64_t work = number * kWarpThreads;
  const int32_t bound =
      static_cast<int32_t>(row_of_work(pattern, work + (lane_index() == 0 ? 0 : kWarpThreads)));
  const int32_t begun = warp_shuffle(bound, 0);            // rows before it
  const int32_t begins = warp_shuffle(bound, 1) - begun;   // rows that begin in it
  const int64_t left = pattern.rows + pattern.entries - work;
  const int32_t count = static_cast<int32_t>(left < kWarpThreads ? left : kWarpThreads) - begins;
  const int32_t own = lane_index() < count ? lane_index() : count - 1;
  EntryWindow made{work - begun, count, begun - 1, 0};
  const uint32_t begin =   // of lane j: where row begun + j begins, the lower half
      lane_index() < begins ? static_cast<uint32_t>(pattern.row_begin[begun + lane_index()]) : 0;
  if (count > 0) made.column = pattern.column[made.place + own];
  // The lane's entry is of the last row that begins with it or before it; where there is an entry,
  // at most 31 rows begin. No column is below 0: it is asked so that the compiler does not read
  // columns only after it has waited for rows.
  const int32_t at = lane_index() < begins && made.column >= 0
                         ? static_cast<int32_t>(begin - static_cast<uint32_t>(made.place))
                         : kWarpThreads;
  int32_t rows = 0;   // that begin up to the lane's entry
  PUMICE_UNROLL
  for (int32_t step = kWarpThreads / 2; step > 0; step /= 2) {
    if (warp_shuffle(at, rows + step - 1) <= own) rows += step;
  }
  made.row += rows;
  return made;
}

PUMICE_DEVICE int64_t number_of_entry(const PatternRef& pattern, int64_t place) {
  return pattern.number == nullptr ? place : pattern.number[place];
}

}   // namespace pumice
