// Makes the pattern of entries in any order, and transposes one. The host sorts in between:
//
//   entries    (row, column) …          │ pattern    rows of columns
//   key_entries   the row of each       │ (the columns are the keys)
//        ── grid/radix_sort.h, stable: entries of a row keep their order ──
//   list_entries  column and number     │ turn_entries  row and number
//        bound_rows: where each row begins
#pragma once

#include <pumice/graphs/entry_number.h>
#include <pumice/platform.h>
#include <pumice/thread/search.h>

namespace pumice {

PUMICE_KERNEL PUMICE_THREADS(kPatternThreads) void key_entries(PUMICE_ARGUMENT(EntryKeyArguments)
                                                                   a) {
  wait_for_previous();
  const int64_t entry = global_thread_index();
  if (entry < a.entries) a.key[entry] = static_cast<uint32_t>(entry_number(a.row, entry));
}

PUMICE_KERNEL PUMICE_THREADS(kPatternThreads) void list_entries(PUMICE_ARGUMENT(ListEntryArguments)
                                                                    a) {
  wait_for_previous();
  const int64_t place = global_thread_index();
  if (place >= a.entries) return;
  const int64_t entry = a.sorted[place];
  a.column_of[place] = entry_number(a.column, entry);
  a.number_of[place] = entry;
}

PUMICE_KERNEL PUMICE_THREADS(kPatternThreads) void bound_rows(PUMICE_ARGUMENT(BoundRowArguments)
                                                                  a) {
  wait_for_previous();
  const int64_t row = global_thread_index();
  if (row > a.rows) return;
  a.row_begin[row] = first_not_below(a.sorted_key, a.entries, row);
}

PUMICE_KERNEL PUMICE_THREADS(kPatternThreads) void turn_entries(PUMICE_ARGUMENT(TurnEntryArguments)
                                                                    a) {
  wait_for_previous();
  const int64_t place = global_thread_index();
  if (place >= a.entries) return;
  const int64_t from = a.sorted[place];
  a.column_of[place] = last_begin(a.pattern.row_begin, static_cast<int32_t>(a.pattern.rows), from);
  a.number_of[place] = a.pattern.number == nullptr ? from : a.pattern.number[from];
}

}   // namespace pumice
