// Cuts a pattern into parts of given shapes. The host sorts and scans in between:
//
//   key_blocks, key_lines   entries by part, type and row of blocks; those of blocks by block too
//   count_slots             where lines begin, and how many slots each block takes
//   list_runs, size_runs    runs of entries of one line or several, with their padding
//   bound_cut               lines and slots of each part, which the host waits for
//   fill_lines, fill_slots, bound_lists
//
// An entry that repeats has a slot of its own in its block, after those before it.
#pragma once

#include <pumice/formats/part_cut_arguments.h>
#include <pumice/graphs/entry_number.h>
#include <pumice/platform.h>
#include <pumice/thread/search.h>

namespace pumice {

struct CutItem {
  int64_t place;   // of the entry; -1: a line that has none
  int64_t part;
  int64_t type;
  int64_t row;   // of blocks
};

PUMICE_DEVICE int64_t rows_of_blocks(const CutArguments& a, const CutShape& shape) {
  return (a.pattern.rows + shape.block_rows - 1) / shape.block_rows;
}

PUMICE_DEVICE CutItem cut_item(const CutArguments& a, int64_t item) {
  CutItem made{item - a.line_items, 0, 0, 0};
  if (made.place >= 0) {
    if (a.part_of != nullptr) made.part = a.part_of[made.place];
    if (a.type_of != nullptr) made.type = a.type_of[made.place];
    made.row = a.row_of[made.place] / a.shape[made.part].block_rows;
    return made;
  }
  made.place = -1;
  const auto begins_by = [&](int64_t part) { return a.shape[part].first_line_item; };
  made.part = first_not_below(begins_by, a.parts, item + 1) - 1;
  const CutShape& shape = a.shape[made.part];
  const int64_t at = item - shape.first_line_item, rows = rows_of_blocks(a, shape);
  made.type = at / rows;
  made.row = at % rows;
  return made;
}

PUMICE_DEVICE int64_t item_at(const CutArguments& a, int64_t at) {
  return a.order == nullptr ? at : int64_t{a.order[at]};
}
PUMICE_DEVICE uint64_t line_key(const CutArguments& a, const CutItem& item) {
  return static_cast<uint64_t>((item.part * a.types + item.type) * a.row_span + item.row);
}
PUMICE_DEVICE uint64_t sorted_line(const CutArguments& a, int64_t at) {
  return a.sorted == nullptr ? line_key(a, cut_item(a, item_at(a, at))) : a.sorted[at];
}
PUMICE_DEVICE int64_t part_of_line(const CutArguments& a, uint64_t key) {
  return static_cast<int64_t>(key) / (a.types * a.row_span);
}

/// The block's column and the position in it; −1 of what comes before all blocks of a line, 0
/// where slots are single entries, which keep their order.
PUMICE_DEVICE int64_t block_key(const CutArguments& a, const CutItem& item) {
  if (item.place < 0) return -1;
  const CutShape& shape = a.shape[item.part];
  const int64_t positions = int64_t{shape.block_rows} * shape.block_columns;
  if (positions == 1) return 0;
  const int64_t column = a.pattern.column[item.place];
  const int64_t in_block = a.row_of[item.place] % shape.block_rows * int64_t{shape.block_columns} +
                           column % shape.block_columns;
  return column / shape.block_columns * positions + in_block;
}

PUMICE_DEVICE int64_t items_of(const CutArguments& a) {
  return a.line_items + a.entries;
}

/// The first place of the order whose line and block are not before these.
PUMICE_DEVICE int64_t first_of_block(const CutArguments& a, uint64_t line, int64_t block) {
  int64_t low = 0, high = items_of(a);
  PUMICE_ROLLED
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const uint64_t of = sorted_line(a, middle);
    const bool is_before =
        of < line || (of == line && block_key(a, cut_item(a, item_at(a, middle))) < block);
    if (is_before) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/// Where an entry stands in the slots of its line.
struct SlotOfEntry {
  int64_t head;     // place of the order where its block begins
  int64_t copies;   // of the same position before it
  int64_t position;
};

PUMICE_DEVICE SlotOfEntry slot_of(const CutArguments& a, int64_t at, const CutItem& item) {
  const CutShape& shape = a.shape[item.part];
  const int64_t positions = int64_t{shape.block_rows} * shape.block_columns;
  if (positions == 1) return {at, 0, 0};
  const uint64_t line = sorted_line(a, at);
  const int64_t block = block_key(a, item);
  return {first_of_block(a, line, block / positions * positions),
          at - first_of_block(a, line, block), block % positions};
}

PUMICE_KERNEL PUMICE_THREADS(kPartThreads) void measure_rows(PUMICE_ARGUMENT(MeasureArguments) a) {
  wait_for_previous();
  const int64_t step = int64_t{grid_size()} * block_size();
  uint64_t most = 0, filled = 0;
  PUMICE_ROLLED
  for (int64_t row = global_thread_index(); row < a.rows; row += step) {
    const auto entries = static_cast<uint64_t>(a.row_begin[row + 1] - a.row_begin[row]);
    if (entries > most) most = entries;
    filled += entries > 0 ? 1 : 0;
  }
  if (most == 0) return;
  atomic_max(&a.found[0], most);
  atomic_add(&a.found[1], filled);
}

PUMICE_KERNEL PUMICE_THREADS(kPartThreads) void list_rows(PUMICE_ARGUMENT(PlaceArguments) a) {
  wait_for_previous();
  const int64_t place = global_thread_index();
  if (place < a.entries)
    a.of_place[place] =
        last_begin(a.pattern.row_begin, static_cast<int32_t>(a.pattern.rows), place);
}

PUMICE_KERNEL PUMICE_THREADS(kPartThreads) void check_given(PUMICE_ARGUMENT(PlaceArguments) a) {
  wait_for_previous();
  const int64_t place = global_thread_index();
  if (place >= a.entries) return;
  const bool has_number = a.by_number != 0 && a.pattern.number != nullptr;
  a.of_place[place] = entry_number(a.given, has_number ? a.pattern.number[place] : place);
}

PUMICE_KERNEL PUMICE_THREADS(kPartThreads) void list_places(PUMICE_ARGUMENT(PlaceArguments) a) {
  wait_for_previous();
  const int64_t place = global_thread_index();
  if (place >= a.entries) return;
  const int64_t number = a.pattern.number[place];
  a.place[number] = place;
  const int64_t row = last_begin(a.pattern.row_begin, static_cast<int32_t>(a.pattern.rows), place);
  if (place > a.pattern.row_begin[row] && a.pattern.number[place - 1] > number)
    *a.is_disordered = 1;
}

PUMICE_KERNEL PUMICE_THREADS(kPartThreads) void key_shares(PUMICE_ARGUMENT(BucketArguments) a) {
  wait_for_previous();
  const int64_t place = global_thread_index();
  if (place >= a.entries) return;
  const int64_t type = a.type_of == nullptr ? 0 : a.type_of[place];
  const int64_t share = a.pattern.column[place] / a.share;
  a.key[place] = static_cast<uint64_t>((share * a.types + type) * a.pattern.rows + a.row_of[place]);
}

PUMICE_KERNEL PUMICE_THREADS(kPartThreads) void bucket_entries(PUMICE_ARGUMENT(BucketArguments) a) {
  wait_for_previous();
  const int64_t at = global_thread_index();
  if (at >= a.entries) return;
  int64_t place = at, length;
  if (a.sorted == nullptr) {
    const int64_t row = a.row_of[place];
    length = a.pattern.row_begin[row + 1] - a.pattern.row_begin[row];
  } else {
    place = a.order[at];
    const auto key = static_cast<int64_t>(a.sorted[at]);
    const auto key_of = [&](int64_t k) { return static_cast<int64_t>(a.sorted[k]); };
    length = first_not_below(key_of, a.entries, key + 1) - first_not_below(key_of, a.entries, key);
  }
  const int64_t wide_enough =
      first_not_below([&](int64_t k) { return a.width[k]; }, a.widths, length);
  const int64_t bucket = wide_enough < a.widths ? wide_enough : a.widths - 1;
  a.part[place] = static_cast<int32_t>(a.pattern.column[place] / a.share * a.widths + bucket);
}

PUMICE_KERNEL PUMICE_THREADS(kPartThreads) void key_blocks(PUMICE_ARGUMENT(CutArguments) a) {
  wait_for_previous();
  const int64_t item = global_thread_index();
  if (item < items_of(a)) a.key[item] = static_cast<uint64_t>(block_key(a, cut_item(a, item)) + 1);
}

PUMICE_KERNEL PUMICE_THREADS(kPartThreads) void key_lines(PUMICE_ARGUMENT(CutArguments) a) {
  wait_for_previous();
  const int64_t at = global_thread_index();
  if (at < items_of(a)) a.key[at] = line_key(a, cut_item(a, item_at(a, at)));
}

PUMICE_KERNEL PUMICE_THREADS(kPartThreads) void count_slots(PUMICE_ARGUMENT(CutArguments) a) {
  wait_for_previous();
  const int64_t at = global_thread_index();
  if (at >= items_of(a)) return;
  a.begins_run[at] = at == 0 || sorted_line(a, at - 1) != sorted_line(a, at) ? 1 : 0;
  const CutItem item = cut_item(a, item_at(a, at));
  if (item.place < 0) return;
  const SlotOfEntry slot = slot_of(a, at, item);
  atomic_max(&a.slots[slot.head], static_cast<uint32_t>(slot.copies + 1));
}

PUMICE_KERNEL PUMICE_THREADS(kPartThreads) void list_runs(PUMICE_ARGUMENT(CutArguments) a) {
  wait_for_previous();
  const int64_t at = global_thread_index();
  if (at > items_of(a)) return;
  if (at == items_of(a) || a.begins_run[at] != 0) a.run_begin[a.run_before[at]] = at;
}

PUMICE_DEVICE int64_t round_up_to(int64_t number, int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

PUMICE_KERNEL PUMICE_THREADS(kPartThreads) void size_runs(PUMICE_ARGUMENT(CutArguments) a) {
  wait_for_previous();
  const int64_t run = global_thread_index();
  if (run >= items_of(a)) return;
  a.run_lines[run] = a.run_slots[run] = 0;
  if (run >= a.run_before[items_of(a)]) return;
  const int64_t begin = a.run_begin[run];
  const CutShape& shape = a.shape[part_of_line(a, sorted_line(a, begin))];
  const int64_t needed = a.slot_before[a.run_begin[run + 1]] - a.slot_before[begin];
  int64_t lines = 1, slots = 0;
  if (shape.width == 0) {
    slots = round_up_to(needed, shape.multiple);
  } else {
    lines = (needed + shape.width - 1) / shape.width;
    if (lines == 0 && shape.all_rows != 0) lines = 1;
    slots = lines * shape.width;
  }
  a.run_lines[run] = static_cast<uint32_t>(lines);
  a.run_slots[run] = static_cast<uint32_t>(slots);
}

/// The first run of this key or a later one.
PUMICE_DEVICE int64_t first_run(const CutArguments& a, int64_t key) {
  const auto key_of = [&](int64_t run) {
    return static_cast<int64_t>(sorted_line(a, a.run_begin[run]));
  };
  return first_not_below(key_of, a.run_before[items_of(a)], key);
}

PUMICE_KERNEL PUMICE_THREADS(kPartThreads) void bound_cut(PUMICE_ARGUMENT(CutArguments) a) {
  wait_for_previous();
  const int64_t part = global_thread_index();
  if (part > a.parts) return;
  const int64_t run = first_run(a, part * a.types * a.row_span);
  a.sizes[2 * part] = a.line_before[run];
  a.sizes[2 * part + 1] = a.padded_before[run];
}

PUMICE_KERNEL PUMICE_THREADS(kPartThreads) void fill_lines(PUMICE_ARGUMENT(CutArguments) a) {
  wait_for_previous();
  const int64_t run = global_thread_index();
  if (run >= a.run_before[items_of(a)]) return;
  const uint64_t key = sorted_line(a, a.run_begin[run]);
  const CutShape& shape = a.shape[part_of_line(a, key)];
  const int64_t first = a.line_before[run], end = a.line_before[run + 1];
  PUMICE_ROLLED
  for (int64_t line = first; line < end; ++line)
    a.row[line] = static_cast<int32_t>(key % static_cast<uint64_t>(a.row_span));
  if (shape.width == 0)
    a.slot_begin[shape.first_begin + (first - shape.first_line)] =
        a.padded_before[run] - shape.first_slot;
}

PUMICE_KERNEL PUMICE_THREADS(kPartThreads,
                             kPartBlocks) void fill_slots(PUMICE_ARGUMENT(CutArguments) a) {
  wait_for_previous();
  const int64_t at = global_thread_index();
  if (at >= items_of(a)) return;
  const CutItem item = cut_item(a, item_at(a, at));
  if (item.place < 0) return;
  const CutShape& shape = a.shape[item.part];
  const SlotOfEntry of = slot_of(a, at, item);
  const int64_t run = a.run_before[at + 1] - 1;
  const int64_t slot =
      a.padded_before[run] + of.copies + a.slot_before[of.head] - a.slot_before[a.run_begin[run]];
  const int64_t positions = int64_t{shape.block_rows} * shape.block_columns;
  a.column[slot] = a.pattern.column[item.place] / shape.block_columns;
  a.entry[shape.first_position + (slot - shape.first_slot) * positions + of.position] =
      a.pattern.number == nullptr ? item.place : a.pattern.number[item.place];
}

/// Ends of the bounds of lines, and bounds of types.
PUMICE_KERNEL PUMICE_THREADS(kPartThreads) void bound_lists(PUMICE_ARGUMENT(CutArguments) a) {
  wait_for_previous();
  const int64_t of_part = a.types + 1;
  const int64_t at = global_thread_index(), part = at / of_part, type = at % of_part;
  if (part >= a.parts) return;
  const CutShape& shape = a.shape[part];
  const int64_t run = first_run(a, (part * a.types + type) * a.row_span);
  const int64_t line = a.line_before[run] - shape.first_line;
  if (a.type_begin != nullptr) a.type_begin[at] = line;
  if (type == a.types && shape.width == 0)
    a.slot_begin[shape.first_begin + line] = a.padded_before[run] - shape.first_slot;
}

}   // namespace pumice
