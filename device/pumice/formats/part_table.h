// Lists the pieces of the lines of all parts, and which of them share a row:
//
//   count_pieces   of each line          │ the host scans
//   bound_parts    pieces before each part, which the host waits for
//   list_pieces    their rows and where they begin  │ the host sorts pieces by row, stable
//   share_rows     rows of several pieces, and a partial sum for each of those
//   list_bare_rows rows without pieces, of which the output is cleared
#pragma once

#include <pumice/formats/part_table_arguments.h>
#include <pumice/grid/exclusive_sum.h>
#include <pumice/platform.h>
#include <pumice/thread/search.h>

namespace pumice {

PUMICE_DEVICE const PartLines& part_of_line(const PieceArguments& a, int64_t line) {
  const auto begins_by = [&](int64_t part) { return a.part[part].first_line; };
  // The last that begins at or before it: parts without lines begin where the next one does.
  return a.part[first_not_below(begins_by, a.parts, line + 1) - 1];
}

struct LineSlots {
  int64_t begin;   // among those of all parts
  int64_t count;
};

PUMICE_DEVICE LineSlots slots_of_line(const PieceArguments& a, const PartLines& part,
                                      int64_t line) {
  const int64_t at = line - part.first_line;
  if (part.first_begin < 0) return {part.first_slot + at * part.width, part.width};
  const int64_t* const begin = a.slot_begin + part.first_begin + at;
  return {part.first_slot + begin[0], begin[1] - begin[0]};
}

PUMICE_KERNEL PUMICE_THREADS(kPartThreads) void count_pieces(PUMICE_ARGUMENT(PieceArguments) a) {
  wait_for_previous();
  const int64_t line = global_thread_index();
  if (line >= a.lines) return;
  const PartLines& part = part_of_line(a, line);
  const int64_t slots = slots_of_line(a, part, line).count;
  const bool is_long = part.is_cut != 0 && slots > kPieceSlots;
  a.pieces[line] =
      is_long ? static_cast<uint32_t>((slots + kPieceSlots - 1) / kPieceSlots) : uint32_t{1};
}

PUMICE_KERNEL PUMICE_THREADS(kPartThreads) void bound_parts(PUMICE_ARGUMENT(PieceArguments) a) {
  wait_for_previous();
  const int64_t part = global_thread_index();
  if (part > a.parts) return;
  a.part_piece[part] = a.piece_before[part < a.parts ? a.part[part].first_line : a.lines];
}

PUMICE_KERNEL PUMICE_THREADS(kPartThreads) void list_pieces(PUMICE_ARGUMENT(PieceArguments) a) {
  wait_for_previous();
  const int64_t line = global_thread_index();
  if (line >= a.lines) return;
  const PartLines& part = part_of_line(a, line);
  const int64_t first = a.piece_before[line], pieces = a.piece_before[line + 1] - first;
  const LineSlots slots = slots_of_line(a, part, line);
  int64_t* const begin = a.piece_begin + part.first_bound + (first - part.first_piece);
  PUMICE_ROLLED
  for (int64_t piece = 0; piece < pieces; ++piece) {
    a.piece_row[first + piece] = a.row[line];
    if (part.first_bound >= 0) begin[piece] = slots.begin + piece * kPieceSlots;
  }
  // The end of the last line, where the next one begins elsewhere.
  if (part.first_bound >= 0) begin[pieces] = slots.begin + slots.count;
}

PUMICE_KERNEL PUMICE_THREADS(kPartThreads,
                             kPartBlocks) void share_rows(PUMICE_ARGUMENT(ShareArguments) a) {
  wait_for_previous();
  constexpr int kBits = 31;
  const int32_t tile = take_tile(a.tickets);
  const int64_t at = int64_t{tile} * kPartThreads + thread_index();
  const bool is_there = at < a.pieces;
  const uint32_t row = is_there ? a.sorted_row[at] : 0;
  const bool begins = is_there && (at == 0 || a.sorted_row[at - 1] != row);
  const bool ends = is_there && (at + 1 == a.pieces || a.sorted_row[at + 1] != row);
  const bool is_shared = is_there && !(begins && ends);
  const uint64_t mine = is_shared ? uint64_t{1} << kBits | (begins ? 1 : 0) : 0;
  const auto [before, end] = grid_exclusive_sum<kPartThreads>(a.states, tile, mine);
  if (thread_index() == 0 && (int64_t{tile} + 1) * kPartThreads >= a.pieces) {
    a.counts[0] = static_cast<int64_t>(end >> kBits);
    a.counts[1] = static_cast<int64_t>(end & ((uint64_t{1} << kBits) - 1));
  }
  if (!is_there) return;
  const auto partial = static_cast<int32_t>(before >> kBits);
  a.target[a.sorted_piece[at]] = is_shared ? ~partial : static_cast<int32_t>(row);
  if (!is_shared || !begins) return;
  const int64_t pieces = first_not_below(a.sorted_row, a.pieces, int64_t{row} + 1) - at;
  a.shared_row[before & ((uint64_t{1} << kBits) - 1)] = {static_cast<int32_t>(row), partial,
                                                         static_cast<int32_t>(pieces)};
}

PUMICE_KERNEL PUMICE_THREADS(kPartThreads) void list_bare_rows(PUMICE_ARGUMENT(ShareArguments) a) {
  wait_for_previous();
  const int32_t tile = take_tile(a.tickets + 1);
  const int64_t row = int64_t{tile} * kPartThreads + thread_index();
  bool is_bare = false;
  if (row < a.rows) {
    const int64_t at = first_not_below(a.sorted_row, a.pieces, row);
    is_bare = at == a.pieces || a.sorted_row[at] != row;
  }
  const auto [before, end] =
      grid_exclusive_sum<kPartThreads>(a.bare_states, tile, uint64_t{is_bare});
  if (thread_index() == 0 && (int64_t{tile} + 1) * kPartThreads >= a.rows)
    a.counts[2] = static_cast<int64_t>(end);
  if (is_bare) a.target[a.pieces + static_cast<int64_t>(before)] = static_cast<int32_t>(row);
}

}   // namespace pumice
