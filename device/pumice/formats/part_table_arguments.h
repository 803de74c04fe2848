// What the kernels that list the pieces of parts (formats/part_table.h) are launched with.
#pragma once

#include <pumice/shared/part_table.h>

namespace pumice {

inline constexpr int kPartThreads = 256;
/// Of a multiprocessor at least, as kScanBlocks of grid/scan_arguments.h.
inline constexpr int kPartBlocks = 4;

/// A part as its lines are: in lists of all parts.
struct PartLines {
  int64_t first_line = 0;
  int64_t first_slot = 0;
  int64_t first_begin = -1;   // in slot_begin, whose bounds are the part's own; -1: `width` slots
  int64_t first_piece = 0;
  int64_t first_bound = -1;   // in piece_begin; -1: lines are pieces
  int32_t width = 0;
  int32_t is_cut = 0;   // into pieces of kPieceSlots slots
};

struct PieceArguments {
  const PartLines* part = nullptr;   // [parts]
  int32_t parts = 0;
  int64_t lines = 0;                       // of all parts
  const int32_t* row = nullptr;            // [lines]
  const int64_t* slot_begin = nullptr;     // of parts without a width
  uint32_t* pieces = nullptr;              // [lines]
  const int64_t* piece_before = nullptr;   // [lines + 1]
  int64_t* part_piece = nullptr;           // [parts + 1] pieces before each part
  int32_t* piece_row = nullptr;            // [pieces]
  int64_t* piece_begin = nullptr;          // bounds of pieces, of parts that are cut
};

struct ShareArguments {
  const uint32_t* sorted_row = nullptr;     // [pieces]
  const uint32_t* sorted_piece = nullptr;   // [pieces]
  int64_t pieces = 0;
  int64_t rows = 0;
  int32_t* target = nullptr;         // [pieces + rows]: those of rows without pieces come last
  LongRow* shared_row = nullptr;     // [pieces / 2]
  int64_t* counts = nullptr;         // [3] partial sums, rows of several pieces, rows without any
  uint64_t* states = nullptr;        // [tiles of pieces] zeroed; grid/look_back.h
  uint64_t* bare_states = nullptr;   // [tiles of rows] zeroed
  uint32_t* tickets = nullptr;       // [2] zeroed
};

}   // namespace pumice
