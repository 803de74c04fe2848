// Concatenation and splitting: columns of up to eight arrays copied at once.
//
//   part 0   [rows, width 0] ─┐
//   part 1   [rows, width 1] ─┴▶ [rows, width 0 + width 1]      (or back)
#pragma once

#include <pumice/ops/elementwise_arguments.h>
#include <pumice/platform.h>
#include <pumice/thread/global_access.h>

namespace pumice {

template <class Piece>
PUMICE_DEVICE void copy_piece(const ColumnPart& part, int64_t rows, int64_t index) {
  const int64_t pieces = part.width / static_cast<int64_t>(sizeof(Piece));
  const int64_t row = index / pieces;
  if (row >= rows) return;
  const int64_t byte = (index - row * pieces) * static_cast<int64_t>(sizeof(Piece));
  const char* from = static_cast<const char*>(part.from) + row * part.from_pitch + byte;
  char* to = static_cast<char*>(part.to) + row * part.to_pitch + byte;
  *reinterpret_cast<Piece*>(to) = *reinterpret_cast<const Piece*>(from);
}

PUMICE_KERNEL PUMICE_THREADS(kElementThreads) void copy_columns(PUMICE_ARGUMENT(ColumnArguments)
                                                                    a) {
  wait_for_previous();
  int at = 0;
  while (at + 1 < a.parts && a.part[at + 1].first_block <= block_index())
    ++at;
  const ColumnPart& part = a.part[at];
  const int64_t index = (block_index() - part.first_block) * block_size() + thread_index();
  switch (a.copy_bytes) {
    case 16: return copy_piece<Words<4>>(part, a.rows, index);
    case 8: return copy_piece<Words<2>>(part, a.rows, index);
    case 4: return copy_piece<uint32_t>(part, a.rows, index);
    case 2: return copy_piece<uint16_t>(part, a.rows, index);
    default: return copy_piece<uint8_t>(part, a.rows, index);
  }
}

}   // namespace pumice
