// What the kernels that cut patterns into parts (formats/part_cut.h) are launched with.
#pragma once

#include <pumice/formats/part_table_arguments.h>
#include <pumice/graphs/patterns_arguments.h>
#include <pumice/shared/pattern_ref.h>

namespace pumice {

/// PartShape, and where the lists of the part begin among those of all parts.
struct CutShape {
  int32_t block_rows = 1;
  int32_t block_columns = 1;
  int32_t width = 0;
  int32_t multiple = 1;
  int32_t all_rows = 0;
  int64_t first_line_item = 0;   // items that make lines of rows without entries
  int64_t first_line = 0;
  int64_t first_slot = 0;
  int64_t first_position = 0;
  int64_t first_begin = 0;   // in slot_begin, without a width
};

struct MeasureArguments {
  const int64_t* row_begin = nullptr;   // [rows + 1]
  int64_t rows = 0;
  uint64_t* found = nullptr;   // [2] zeroed: the most entries of a row, rows that have some
};

struct PlaceArguments {
  PatternRef pattern;
  int64_t entries = 0;
  NumberList given{};   // by place, or by number
  int32_t by_number = 0;
  int32_t* of_place = nullptr;        // [entries] what is given, checked; or the row of each place
  int64_t* place = nullptr;           // [entries] by number
  int64_t* is_disordered = nullptr;   // becomes 1 where numbers do not ascend within a row
};

/// hyb: which part takes which entry. Entries are sorted by part of the columns, type and row.
struct BucketArguments {
  PatternRef pattern;
  int64_t entries = 0;
  const int32_t* row_of = nullptr;    // [entries] by place
  const int32_t* type_of = nullptr;   // [entries] by place, or null
  int64_t types = 1;
  int64_t share = 1;                  // columns of a part of them
  uint64_t* key = nullptr;            // [entries]
  const uint64_t* sorted = nullptr;   // [entries]; null: sorted by row as they are
  const uint32_t* order = nullptr;    // [entries] places
  const int64_t* width = nullptr;     // [widths]
  int64_t widths = 0;
  int32_t* part = nullptr;   // [entries] by place
};

/// Items are lines of rows that may have no entries, then entries by place.
struct CutArguments {
  PatternRef pattern;
  int64_t entries = 0;
  int64_t line_items = 0;
  const int32_t* row_of = nullptr;    // [entries] by place
  const int32_t* part_of = nullptr;   // [entries] by place; null: the first
  const int32_t* type_of = nullptr;   // [entries] by place; null: no types
  const CutShape* shape = nullptr;    // [parts]
  int32_t parts = 0;
  int64_t types = 1;
  int64_t row_span = 1;   // rows of blocks that a key tells apart
  // Sorted: by part, type and row of blocks; within, by block and position in it, or by place.
  uint64_t* key = nullptr;               // [items]
  const uint64_t* sorted = nullptr;      // [items]
  const uint32_t* order = nullptr;       // [items]; null: as they come
  uint32_t* begins_run = nullptr;        // [items] 1 where a run of one row of blocks begins
  uint32_t* slots = nullptr;             // [items] zeroed: slots of the block that begins there
  const int64_t* run_before = nullptr;   // [items + 1]
  const int64_t* slot_before = nullptr;
  int64_t* run_begin = nullptr;             // [items + 1] of each run, and the end
  uint32_t* run_lines = nullptr;            // [items]
  uint32_t* run_slots = nullptr;            // [items], with padding
  const int64_t* line_before = nullptr;     // [items + 1] of runs
  const int64_t* padded_before = nullptr;   // [items + 1]
  int64_t* sizes = nullptr;                 // [2 · (parts + 1)] lines and slots before each part
  // What is made, of all parts:
  int32_t* row = nullptr;
  int64_t* slot_begin = nullptr;
  int32_t* column = nullptr;       // -1 everywhere
  int64_t* entry = nullptr;        // -1 everywhere
  int64_t* type_begin = nullptr;   // [parts, types + 1], or null
};

}   // namespace pumice
