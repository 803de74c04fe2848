// EdgeMap on a device: see entry_spec.h. A team takes a row, or a part of one, and a head; its sums
// over channels meet in a shuffle, so that all teams of a warp go on together. What is added up, a
// product or a leaky sum, is the specification's.
#pragma once

#include <pumice/shared/entry_arguments.h>
#include <pumice/skeleton/entry_walk.h>
#include <pumice/thread/global_access.h>
#include <pumice/thread/leaky.h>

namespace pumice {

/// The sum over the team, in every thread of it.
template <int32_t kTeam> PUMICE_DEVICE float sum_over_team(float value) {
  PUMICE_UNROLL
  for (int32_t mask = kTeam / 2; mask > 0; mask /= 2)
    value += warp_shuffle_xor(value, mask);
  return value;
}

template <EdgeMapSpec kSpec> struct EdgeMap {
  static constexpr int32_t kChunk = entry_chunk(kSpec.type);
  static constexpr int32_t kChunks = kSpec.schedule.chunks;
  static constexpr int32_t kTeam = kSpec.schedule.team;
  static constexpr int32_t kTile = kTeam * kChunks * kChunk;
  static constexpr int32_t kAhead = kSpec.schedule.ahead;   // entries at a time
  static constexpr bool kLeaky = kSpec.operation == EdgeOperation::leaky;

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

  /// `from`: the first channel of this head.
  PUMICE_DEVICE void load(const void* data, int64_t from, int32_t tile,
                          float (&value)[kChunks][kChunk]) const {
    PUMICE_UNROLL
    for (int32_t j = 0; j < kChunks; ++j) {
      const int32_t channel = channel_of(tile, j);
      load_chunk<kSpec.type, kSpec.schedule.access, true>(data, from + channel, value[j],
                                                          count_of(channel));
    }
  }

  /// What stays while entries pass by.
  struct Row {
    float left[kChunks][kChunk];
    float attention[kLeaky ? kChunks : 1][kChunk];
  };
  PUMICE_DEVICE void load_row(int32_t tile, Row& of) const {
    PUMICE_UNROLL
    for (int32_t j = 0; j < kChunks; ++j)
      fill(of.left[j], 0.0f);
    load(a.left, row * a.channels + first, tile, of.left);
    if constexpr (kLeaky) {
      fill(of.attention[0], 0.0f);
      load(a.attention, first, tile, of.attention);
    }
  }

  /// This thread's share of one product of rows, or of one leaky sum. `entry`: rows of entries.
  PUMICE_DEVICE float share(const Row& of, const float (&right)[kChunks][kChunk],
                            const float (&entry)[kSpec.entries ? kChunks : 1][kChunk], int32_t tile,
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
        if constexpr (kLeaky) {
          float z = of.left[j][i] + right[j][i];
          if constexpr (kSpec.entries) z += entry[j][i];
          sum += of.attention[j][i] * leaky(z, a.slope);
        } else {
          sum += of.left[j][i] * right[j][i];
        }
      }
    }
    return sum;
  }

  /// `sum[e]` += the share of the entries from `place` on, of which `count` are there.
  PUMICE_DEVICE void add_tile(int64_t place, int64_t count, int32_t tile,
                              float (&sum)[kAhead]) const {
    Row of;
    load_row(tile, of);
    float right[kAhead][kChunks][kChunk];
    float entry[kSpec.entries ? kAhead : 1][kSpec.entries ? kChunks : 1][kChunk];
    int64_t number[kAhead];
    PUMICE_UNROLL
    for (int32_t e = 0; e < kAhead; ++e) {
      if (e >= count) continue;
      number[e] = number_of_entry(a.pattern, place + e);
      load(a.right, int64_t{a.pattern.column[place + e]} * a.channels + first, tile, right[e]);
      if constexpr (kSpec.entries) load(a.entry, number[e] * a.channels + first, tile, entry[e]);
    }
    PUMICE_UNROLL
    for (int32_t e = 0; e < kAhead; ++e) {
      if (e >= count) continue;
      sum[e] += share(of, right[e], entry[kSpec.entries ? e : 0], tile, number[e]);
    }
  }
};

template <EdgeMapSpec kSpec> PUMICE_DEVICE void edge_map(const EdgeArguments& a) {
  using Map = EdgeMap<kSpec>;
  const int64_t items = entry_items(a.pattern);
  const int32_t head_channels = a.channels / a.heads, head = block_index_y();
  const int64_t step = int64_t{grid_size()} * block_size() / Map::kTeam;
  const bool writes = thread_index() % Map::kTeam == 0;
  int64_t at = global_thread_index() / Map::kTeam;
  PUMICE_ROLLED
  for (; warp_any(at < items); at += step) {
    EntryRange range;
    if (at < items) range = range_of_item(a.pattern, at);
    if (range.is_left_out) range.end = range.begin;
    const Map map{a, range.row, head * head_channels, head_channels};
    const float scale =
        a.averages && range.entries > 0 ? 1.0f / static_cast<float>(range.entries) : 1;
    int64_t place = range.begin;
    PUMICE_ROLLED
    for (; warp_any(place < range.end); place += Map::kAhead) {
      const int64_t count = range.end - place;   // negative where this team is done
      float sum[Map::kAhead];
      fill(sum, 0.0f);
      PUMICE_ROLLED
      for (int32_t tile = 0; tile < head_channels; tile += Map::kTile)
        map.add_tile(place, count, tile, sum);
      PUMICE_UNROLL
      for (int32_t e = 0; e < Map::kAhead; ++e) {
        const float total = sum_over_team<Map::kTeam>(sum[e]);
        if (!writes || e >= count) continue;
        const int64_t number = number_of_entry(a.pattern, place + e);
        store_element(kSpec.type, a.output, number * a.heads + head, total * scale);
      }
    }
  }
}

}   // namespace pumice
