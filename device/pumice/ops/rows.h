// Rows gathered by number, and lists of row numbers turned around.
#pragma once

#include <pumice/ops/row_list.h>
#include <pumice/thread/global_access.h>

namespace pumice {

template <class Piece> PUMICE_DEVICE void take_piece(const TakeArguments& a) {
  const int64_t pieces = a.width / static_cast<int64_t>(sizeof(Piece));
  const int64_t index = global_thread_index();
  const int64_t i = index / pieces;
  if (i >= a.rows.size) return;
  const int64_t byte = (index - i * pieces) * static_cast<int64_t>(sizeof(Piece));
  const int64_t row = listed_row(a.rows, i);
  char* const to = static_cast<char*>(a.to) + i * a.to_pitch + byte;
  if (row < 0) {
    const char filler = row == kNoRow ? 0 : static_cast<char>(0xff);
    for (unsigned b = 0; b < sizeof(Piece); ++b)
      to[b] = filler;
    return;
  }
  const char* const from = static_cast<const char*>(a.from) + row * a.from_pitch + byte;
  *reinterpret_cast<Piece*>(to) = *reinterpret_cast<const Piece*>(from);
}

PUMICE_KERNEL PUMICE_THREADS(kRowThreads) void take_rows(PUMICE_ARGUMENT(TakeArguments) a) {
  wait_for_previous();
  switch (a.copy_bytes) {
    case 16: return take_piece<Words<4>>(a);
    case 8: return take_piece<Words<2>>(a);
    case 4: return take_piece<uint32_t>(a);
    case 2: return take_piece<uint16_t>(a);
    default: return take_piece<uint8_t>(a);
  }
}

template <class Piece> PUMICE_DEVICE void clear_pieces(const ClearTailArguments& a) {
  const int64_t pieces = a.pitch / static_cast<int64_t>(sizeof(Piece));
  const int64_t kept = (a.rows.poisoned() ? a.rows.capacity : a.rows.rows()) * pieces;
  const int64_t end = a.rows.capacity * pieces;
  const int64_t step = int64_t{grid_size()} * kRowThreads;
  const int64_t first = a.from == nullptr ? kept : 0;
  PUMICE_ROLLED
  for (int64_t i = first + global_thread_index(); i < end; i += step)
    static_cast<Piece*>(a.data)[i] = i < kept ? static_cast<const Piece*>(a.from)[i] : Piece{};
}

PUMICE_KERNEL PUMICE_THREADS(kRowThreads) void clear_tail(PUMICE_ARGUMENT(ClearTailArguments) a) {
  wait_for_previous();
  switch (a.copy_bytes) {
    case 16: return clear_pieces<Words<4>>(a);
    case 8: return clear_pieces<Words<2>>(a);
    case 4: return clear_pieces<uint32_t>(a);
    case 2: return clear_pieces<uint16_t>(a);
    default: return clear_pieces<uint8_t>(a);
  }
}

PUMICE_KERNEL PUMICE_THREADS(kRowThreads) void invert_rows(PUMICE_ARGUMENT(InvertArguments) a) {
  wait_for_previous();
  const int64_t i = global_thread_index();
  if (i >= a.rows.size) return;
  const int64_t row = listed_row(a.rows, i);
  if (row >= 0) a.inverse[row] = static_cast<int32_t>(i);
}

}   // namespace pumice
