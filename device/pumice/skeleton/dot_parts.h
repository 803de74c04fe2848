// Products of the rows and columns of entries over parts: see part_spec.h. A team takes an item and
// a head; its sums over channels meet in a shuffle, so that all teams of a warp go on together.
#pragma once

#include <pumice/shared/part_spec.h>
#include <pumice/skeleton/piece_walk.h>
#include <pumice/thread/global_access.h>

namespace pumice {

template <DotPartsSpec kSpec> struct DotParts {
  static constexpr int32_t kChunk = entry_chunk(kSpec.type);
  static constexpr int32_t kTeam = kSpec.schedule.team;
  static constexpr int32_t kTile = kTeam * kChunk;
  static constexpr int32_t kAhead = kSpec.schedule.ahead;   // slots at a time

  const DotPartsArguments& a;
  int32_t first;   // channel of the head
  int32_t head_channels;

  PUMICE_DEVICE int32_t channel_of(int32_t tile) const {
    return tile + thread_index() % kTeam * kChunk;
  }
  PUMICE_DEVICE void load(const void* data, int64_t row, int32_t tile,
                          float (&value)[kChunk]) const {
    const int32_t channel = channel_of(tile), left = head_channels - channel;
    fill(value, 0.0f);
    load_chunk<kSpec.type, kSpec.schedule.access, true>(data, row * a.channels + first + channel,
                                                        value, left < kChunk ? left : kChunk);
  }

  /// `sum[e]` += this thread's share of slot e, of which those with a column are there.
  PUMICE_DEVICE void add_tile(int64_t row, const int32_t (&column)[kAhead], int32_t tile,
                              float (&sum)[kAhead]) const {
    float left[kChunk];
    float right[kAhead][kChunk];
    if (column[0] >= 0) load(a.left, row, tile, left);
    PUMICE_UNROLL
    for (int32_t e = 0; e < kAhead; ++e) {
      if (column[e] >= 0) load(a.right, column[e], tile, right[e]);
    }
    PUMICE_UNROLL
    for (int32_t e = 0; e < kAhead; ++e) {
      if (column[e] < 0) continue;
      PUMICE_UNROLL
      for (int32_t i = 0; i < kChunk; ++i)
        sum[e] += left[i] * right[e][i];
    }
  }
};

template <DotPartsSpec kSpec> PUMICE_DEVICE void dot_parts(const DotPartsArguments& a) {
  using Dot = DotParts<kSpec>;
  const int32_t head_channels = a.channels / a.heads, head = block_index_y();
  const Dot dot{a, head * head_channels, head_channels};
  const int64_t item = global_thread_index() / Dot::kTeam;
  const bool has_item = item < a.table.slot_items;
  const bool writes = thread_index() % Dot::kTeam == 0;
  PieceRun run{};
  if (has_item) run = run_of_item(a.table, item);
  PieceCursor cursor(run);
  PUMICE_ROLLED
  while (warp_any(!cursor.is_done())) {
    const bool is_at_work = !cursor.is_done();
    int32_t column[Dot::kAhead];
    int64_t row = 0;
    PUMICE_UNROLL
    for (int32_t e = 0; e < Dot::kAhead; ++e) {
      const bool is_there = is_at_work && cursor.at + e < cursor.piece_end;
      column[e] = is_there ? a.table.column[cursor.base + cursor.at + e] : -1;
    }
    if (is_at_work) row = a.table.row[cursor.piece];
    float sum[Dot::kAhead];
    fill(sum, 0.0f);
    PUMICE_ROLLED
    for (int32_t tile = 0; tile < head_channels; tile += Dot::kTile)
      dot.add_tile(row, column, tile, sum);
    PUMICE_UNROLL
    for (int32_t e = 0; e < Dot::kAhead; ++e) {
      float total = sum[e];
      PUMICE_UNROLL
      for (int32_t mask = Dot::kTeam / 2; mask > 0; mask /= 2)
        total += warp_shuffle_xor(total, mask);
      if (!writes || column[e] < 0) continue;
      const int64_t slot = cursor.base + cursor.at + e;
      const int64_t number = a.table.number == nullptr ? slot : a.table.number[slot];
      store_element(kSpec.type, a.output, number * a.heads + head, total);
    }
    if (!is_at_work) continue;
    cursor.at += Dot::kAhead;
    // Where the last one was padding, so is the rest of the piece.
    if (column[Dot::kAhead - 1] < 0 || cursor.at >= cursor.piece_end) {
      cursor.at = cursor.piece_end;
      cursor.next_piece();
    }
  }
}

}   // namespace pumice
