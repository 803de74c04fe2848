// Rows together for a dense product, and its rows added to those of a sum.
//
//    rows of inputs        packed            products          sum
//      4 ▬▬▬▬ ───────► 0 ▬▬▬▬ ─┐          ┌─ 0 ▬▬▬▬ ───────► 9 ▬▬▬▬
//      7 ▬▬▬▬ ───────► 1 ▬▬▬▬ ─┼─ dense ──┼─ 1 ▬▬▬▬ ───────► 2 ▬▬▬▬
//      1 ▬▬▬▬ ───────► 2 ▬▬▬▬ ─┘          └─ 2 ▬▬▬▬ ───────► 5 ▬▬▬▬
#pragma once

#include <pumice/shared/gather_arguments.h>
#include <pumice/thread/global_access.h>

namespace pumice {

/// Rows in pieces of Piece.
template <class Piece> PUMICE_DEVICE void gather_pieces(const GatherRowsArguments& a) {
  const int32_t pieces = a.row_bytes / static_cast<int32_t>(sizeof(Piece));
  const auto* const from = static_cast<const Piece*>(a.from);
  auto* const to = static_cast<Piece*>(a.to);
  const int64_t step = int64_t{grid_size()} * block_size();
  PUMICE_ROLLED
  for (int64_t at = global_thread_index(); at < a.rows * pieces; at += step) {
    const int64_t row = at / pieces;
    to[at] = from[a.row[row] * int64_t{pieces} + (at - row * pieces)];
  }
}

template <int32_t kCount> PUMICE_DEVICE void scatter_add_chunks(const ScatterAddArguments& a) {
  const int32_t chunks = a.channels / kCount;
  const int64_t step = int64_t{grid_size()} * block_size();
  PUMICE_ROLLED
  for (int64_t at = global_thread_index(); at < a.rows * chunks; at += step) {
    const int64_t row = at / chunks;
    const int32_t channel = static_cast<int32_t>(at - row * chunks) * kCount;
    const int64_t to = a.row[row] * int64_t{a.channels} + channel;
    float sum[kCount], product[kCount];
    load_chunk<ElementType::f32, kCount * 4>(a.sum, to, sum, kCount);
    load_chunk<ElementType::f32, kCount * 4, true>(a.product, at * kCount, product, kCount);
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i)
      sum[i] += product[i];
    store_chunk<ElementType::f32, kCount * 4>(a.sum, to, sum, kCount);
  }
}

PUMICE_KERNEL PUMICE_THREADS(kMoveThreads) void gather_rows(PUMICE_ARGUMENT(GatherRowsArguments)
                                                                a) {
  wait_for_previous();
  if (a.row_bytes % 16 == 0) return gather_pieces<Words<4>>(a);
  if (a.row_bytes % 4 == 0) return gather_pieces<uint32_t>(a);
  gather_pieces<uint16_t>(a);
}

PUMICE_KERNEL PUMICE_THREADS(kMoveThreads) void scatter_add_rows(
    PUMICE_ARGUMENT(ScatterAddArguments) a) {
  wait_for_previous();
  if (a.channels % 4 == 0) return scatter_add_chunks<4>(a);
  scatter_add_chunks<1>(a);
}

}   // namespace pumice
