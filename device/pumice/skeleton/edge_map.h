// EdgeMap on a device: see entry_spec.h. A team takes a row, or a part of one, and a head; its sums
// over channels meet in a shuffle, so that all teams of a warp go on together.
#pragma once

#include <pumice/shared/entry_arguments.h>
#include <pumice/skeleton/entry_walk.h>
#include <pumice/thread/global_access.h>

namespace pumice {

/// The sum over the team, in every thread of it.
template <int32_t kTeam> PUMICE_DEVICE float sum_over_team(float value) {
  PUMICE_UNROLL
  for (int32_t mask = kTeam / 2; mask > 0; mask /= 2)
    value += warp_shuffle_xor(value, mask);
  return value;
}

template <EdgeMapSpec kSpec> struct EdgeDot {
  static constexpr int32_t kChunk = entry_chunk(kSpec.type);
  static constexpr int32_t kChunks = kSpec.schedule.chunks;
  static constexpr int32_t kTeam = kSpec.schedule.team;
  static constexpr int32_t kTile = kTeam * kChunks * kChunk;
  static constexpr int32_t kAhead = kSpec.schedule.ahead;   // entries at a time

  const EdgeArguments& a;
  int64_t row;
  int32_t first;   // channel of the head
  int32_t head_channels;

  PUMICE_DEVICE int32_t channel_of(int32_t tile, int32_t j) const {
    const int32_t lane = thread_index() % kTeam;
    return tile + (j * kTeam + lane) * kChunk;
  }
  PUMICE_DEVICE int32_t count_of(int32_t channel) const {
    const int32_t left = head_channels - channel;
    return left < kChunk ? left : kChunk;
  }

  PUMICE_DEVICE void load_left(int32_t tile, float (&left)[kChunks][kChunk]) const {
    PUMICE_UNROLL
    for (int32_t j = 0; j < kChunks; ++j) {
      fill(left[j], 0.0f);
      const int32_t channel = channel_of(tile, j);
      load_chunk<kSpec.type, kSpec.schedule.access, true>(
          a.left, row * a.channels + first + channel, left[j], count_of(channel));
    }
  }

  /// This thread's share of one product of rows.
  PUMICE_DEVICE float share(const float (&left)[kChunks][kChunk],
                            const float (&right)[kChunks][kChunk], int32_t tile,
                            int64_t number) const {
    float sum = 0;
    PUMICE_UNROLL
    for (int32_t j = 0; j < kChunks; ++j) {
      const int32_t channel = channel_of(tile, j), count = count_of(channel);
      PUMICE_UNROLL
      for (int32_t i = 0; i < kChunk; ++i) {
        if (i >= count) continue;
        if constexpr (kSpec.picked) {
          if (a.picked[row * a.channels + first + channel + i] != number) continue;
        }
        sum += left[j][i] * right[j][i];
      }
    }
    return sum;
  }

  /// `sum[e]` += the share of the entries from `place` on, of which `count` are there.
  PUMICE_DEVICE void add_tile(int64_t place, int64_t count, int32_t tile,
                              float (&sum)[kAhead]) const {
    float left[kChunks][kChunk];
    load_left(tile, left);
    float right[kAhead][kChunks][kChunk];
    PUMICE_UNROLL
    for (int32_t e = 0; e < kAhead; ++e) {
      if (e >= count) continue;
      const int64_t from = int64_t{a.pattern.column[place + e]} * a.channels + first;
      PUMICE_UNROLL
      for (int32_t j = 0; j < kChunks; ++j) {
        const int32_t channel = channel_of(tile, j);
        load_chunk<kSpec.type, kSpec.schedule.access, true>(a.right, from + channel, right[e][j],
                                                            count_of(channel));
      }
    }
    PUMICE_UNROLL
    for (int32_t e = 0; e < kAhead; ++e) {
      if (e >= count) continue;
      sum[e] += share(left, right[e], tile, number_of_entry(a.pattern, place + e));
    }
  }
};

template <EdgeMapSpec kSpec> PUMICE_DEVICE void edge_dot(const EdgeArguments& a) {
  using Dot = EdgeDot<kSpec>;
  const int64_t items = entry_items(a.pattern);
  const int32_t head_channels = a.channels / a.heads, head = block_index_y();
  const int64_t step = int64_t{grid_size()} * block_size() / Dot::kTeam;
  const bool writes = thread_index() % Dot::kTeam == 0;
  int64_t at = global_thread_index() / Dot::kTeam;
  PUMICE_ROLLED
  for (; warp_any(at < items); at += step) {
    EntryRange range;
    if (at < items) range = range_of_item(a.pattern, at);
    if (range.is_left_out) range.end = range.begin;
    const Dot dot{a, range.row, head * head_channels, head_channels};
    const float scale =
        a.averages && range.entries > 0 ? 1.0f / static_cast<float>(range.entries) : 1;
    int64_t place = range.begin;
    PUMICE_ROLLED
    for (; warp_any(place < range.end); place += Dot::kAhead) {
      const int64_t count = range.end - place;   // negative where this team is done
      float sum[Dot::kAhead];
      fill(sum, 0.0f);
      PUMICE_ROLLED
      for (int32_t tile = 0; tile < head_channels; tile += Dot::kTile)
        dot.add_tile(place, count, tile, sum);
      PUMICE_UNROLL
      for (int32_t e = 0; e < Dot::kAhead; ++e) {
        const float total = sum_over_team<Dot::kTeam>(sum[e]);
        if (!writes || e >= count) continue;
        const int64_t number = number_of_entry(a.pattern, place + e);
        store_element(kSpec.type, a.output, number * a.heads + head, total * scale);
      }
    }
  }
}

}   // namespace pumice
