// What a pattern was cut into, as products on a device go over it: the slots of all parts one after
// the other, and their lines in pieces that are short enough for one team of threads. All parts are
// one launch; a part without lines has no items.
//
//   ranges   part 0, width 2      part 1, width 4       part 2, no width      rows without lines
//   pieces   ▬▬ ▬▬ ▬▬ │ ▬▬ …      ▬▬▬▬ │ ▬▬▬▬ │ …       ▬▬▬▬▬▬ ▬ ▬▬▬ │ …      · · · ·
//            └─ item ─┘           └────┘ item           └─  item   ─┘
#pragma once

#include <pumice/shared/pattern_ref.h>

namespace pumice {

/// Slots of a piece at the most, as entries of a part of a long row.
inline constexpr int32_t kPieceSlots = 256;

/// Pieces that follow each other and have slots by one rule.
struct PartRange {
  int64_t first_item = 0;
  int64_t first_piece = 0;
  int64_t pieces = 0;
  int64_t first_slot = 0;
  int64_t first_bound =
      -1;   // pieces + 1 bounds from here on in piece_begin; -1: `width` slots each
  int32_t width = 0;
  int32_t pieces_of_item = 1;
};

struct PartTableRef {
  const PartRange* range = nullptr;   // [ranges], the last that of rows without lines
  int32_t ranges = 0;
  int64_t items = 0;                      // of all ranges
  int64_t slot_items = 0;                 // of those that have slots, which come first
  const int64_t* piece_begin = nullptr;   // slots where pieces begin, of ranges without a width
  const int32_t* row = nullptr;           // [pieces] but of the last range
  /// [pieces] the row, where this piece is all that it has; else ~p: its sum is partial sum p.
  const int32_t* target = nullptr;
  const int32_t* column = nullptr;       // [slots], -1: padding, which comes last in a line
  const int64_t* number = nullptr;       // [slots] of entries; null: their slots
  const int64_t* row_begin = nullptr;    // [rows + 1] of the pattern
  const int64_t* place = nullptr;        // [entries] by number; null: numbers ascend within rows
  const LongRow* shared_row = nullptr;   // rows of several pieces, and their partial sums
  int64_t shared_rows = 0;
  int64_t partials = 0;
};

}   // namespace pumice
