// Which pieces of lines a team of threads takes, and where it is in them.
#pragma once

#include <pumice/platform.h>
#include <pumice/shared/part_table.h>
#include <pumice/thread/search.h>

namespace pumice {

/// Pieces [piece, last) and their slots from `base` on.
struct PieceRun {
  int64_t base;
  const int64_t* bound;   // of the pieces, one more than there are; null: `width` slots each
  int32_t piece;
  int32_t last;
  int32_t width;
};

PUMICE_DEVICE PieceRun run_of_item(const PartTableRef& table, int64_t item) {
  const auto begins_by = [&](int64_t range) { return table.range[range].first_item; };
  const PartRange& range = table.range[first_not_below(begins_by, table.ranges, item + 1) - 1];
  const int64_t first = (item - range.first_item) * range.pieces_of_item;
  const int64_t left = range.pieces - first;
  PieceRun run;
  run.piece = static_cast<int32_t>(range.first_piece + first);
  run.last =
      run.piece + static_cast<int32_t>(left < range.pieces_of_item ? left : range.pieces_of_item);
  run.width = range.width;
  run.bound = range.first_bound < 0 ? nullptr : table.piece_begin + range.first_bound + first;
  run.base = run.bound == nullptr ? range.first_slot + first * range.width : run.bound[0];
  return run;
}

/// Where a team is in its run; slots are counted from the run's base on.
struct PieceCursor {
  int64_t base;
  const int64_t* bound;   // of the end of the piece
  int32_t at = 0;
  int32_t piece;
  int32_t last;
  int32_t width;
  int32_t piece_end;

  PUMICE_DEVICE explicit PieceCursor(const PieceRun& run)
      : base(run.base), bound(run.bound), piece(run.piece), last(run.last), width(run.width) {
    piece_end = 0;
    if (piece < last) step_end();
  }
  PUMICE_DEVICE bool is_done() const { return piece >= last; }
  PUMICE_DEVICE void next_piece() {
    ++piece;
    if (piece < last) step_end();
  }

 private:
  PUMICE_DEVICE void step_end() {
    if (bound == nullptr) {
      piece_end += width;
    } else {
      piece_end = static_cast<int32_t>(*++bound - base);
    }
  }
};

}   // namespace pumice
