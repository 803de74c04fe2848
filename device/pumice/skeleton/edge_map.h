// EdgeMap on a device: see entry_spec.h. A warp takes windows of entries, each lane the row and the
// column of one of them. Teams of the warp go over the window together, an entry a team at a time:
//
//   lanes of a team            entries of the window, and who reads their rows (two teams)
//   ▬▬▬▬▬▬▬▬ ▬▬▬▬▬▬▬▬          0: team 0   1: team 1   2: team 0   3: team 1   …
//   chunks of channels         └────────── ahead entries a team on their way ──────────┘
//
// Sums over channels meet in shuffles that halve the number of values a lane has and of lanes that
// a value is in, so that lane l of a team ends up with the l-th entry of the team, and a warp
// writes its entries at once. What is added up, a product or a leaky sum, is the specification's.
#pragma once

#include <pumice/shared/entry_arguments.h>
#include <pumice/skeleton/entry_walk.h>
#include <pumice/thread/global_access.h>
#include <pumice/thread/leaky.h>

namespace pumice {

/// The sums over a team of each of kCount values, powers of 2: in lane l that of value l % kCount.
/// With the whole warp.
template <int32_t kTeam, int32_t kCount> PUMICE_DEVICE float sum_over_team(float (&value)[kCount]) {
  PUMICE_UNROLL
  for (int32_t mask = 1; mask < kCount; mask *= 2) {
    const bool is_odd = (lane_index() & mask) != 0;
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount / (2 * mask); ++i) {
      const float kept = is_odd ? value[2 * i + 1] : value[2 * i];
      const float given = is_odd ? value[2 * i] : value[2 * i + 1];
      value[i] = kept + warp_shuffle_xor(given, mask);
    }
  }
  float sum = value[0];
  PUMICE_UNROLL
  for (int32_t mask = kCount; mask < kTeam; mask *= 2)
    sum += warp_shuffle_xor(sum, mask);
  return sum;
}

template <EdgeMapSpec kSpec> struct EdgeMap {
  static constexpr int32_t kChunk = entry_chunk(kSpec.type);
  static constexpr int32_t kBytes = element_bytes(kSpec.type);
  static constexpr int32_t kChunks = kSpec.schedule.chunks;
  static constexpr int32_t kTeam = kSpec.schedule.team;
  static constexpr int32_t kTeams = kWarpThreads / kTeam;
  static constexpr int32_t kTile = kTeam * kChunks * kChunk;
  static constexpr int32_t kAhead = kSpec.schedule.ahead;   // entries of a team at a time
  static constexpr bool kLeaky = kSpec.operation == EdgeOperation::leaky;
  static constexpr bool kNumbers = kSpec.picked || kSpec.entries;

  using Raw = RawChunk<kSpec.type>;

  const EdgeArguments& a;
  const EntryWindow& window;
  int32_t first;   // channel of the head

  PUMICE_DEVICE static int32_t lane() { return lane_index() % kTeam; }
  /// The place in the window of entry `step` of this team.
  PUMICE_DEVICE static int32_t place_of(int32_t step) {
    return step * kTeams + lane_index() / kTeam;
  }

  PUMICE_DEVICE int32_t channel_of(int32_t tile, int32_t j) const {
    return tile + (j * kTeam + lane()) * kChunk;
  }
  /// Of channels of a chunk, none and less where there are none.
  PUMICE_DEVICE int32_t count_of(int32_t channel) const {
    const int32_t left = a.head_channels - channel;
    return left < kChunk ? left : kChunk;
  }

  /// Row `row` of `data` of the channels from `channel` of the head on. A chunk of 16 bytes that is
  /// not there is that of channel 0: without branches, all reads are on their way at a time.
  PUMICE_DEVICE void load(const void* data, uint64_t row, int32_t channel, Raw& chunk) const {
    const int32_t count = count_of(channel);
    const int32_t from = kSpec.schedule.access < 16 || count > 0 ? channel : 0;
    const uint64_t stride = static_cast<uint32_t>(a.channels) * static_cast<uint32_t>(kBytes);
    chunk.template load<kSpec.schedule.access>(
        static_cast<const char*>(data) + int64_t{first + from} * kBytes + row * stride, count);
  }

  /// Entries of the team at a time.
  struct Batch {
    int32_t row[kAhead];
    int32_t column[kAhead];
    int64_t number[kNumbers ? kAhead : 1];
  };
  /// Past the end of the window its last entry is taken again, and what comes of it left.
  PUMICE_DEVICE void read(Batch& batch, int32_t step) const {
    PUMICE_UNROLL
    for (int32_t e = 0; e < kAhead; ++e) {
      const int32_t wanted = place_of(step + e);
      const int32_t at = wanted < window.count ? wanted : window.count - 1;
      batch.row[e] = warp_shuffle(window.row, at);
      batch.column[e] = warp_shuffle(window.column, at);
      if constexpr (kNumbers) batch.number[e] = number_of_entry(a.pattern, window.place + at);
    }
  }

  /// Chunk j of the rows of a batch, in one tile of channels.
  struct Rows {
    Raw left[kAhead];
    Raw right[kAhead];
    Raw entry[kSpec.entries ? kAhead : 1];
    Raw attention;
  };
  PUMICE_DEVICE void load(Rows& rows, const Batch& batch, int32_t channel) const {
    if constexpr (kLeaky) load(a.attention, 0, channel, rows.attention);
    PUMICE_UNROLL
    for (int32_t e = 0; e < kAhead; ++e) {
      load(a.right, static_cast<uint32_t>(batch.column[e]), channel, rows.right[e]);
      load(a.left, static_cast<uint32_t>(batch.row[e]), channel, rows.left[e]);
      if constexpr (kSpec.entries)
        load(a.entry, static_cast<uint64_t>(batch.number[e]), channel, rows.entry[e]);
    }
  }

  /// This thread's share of one product of rows, or of one leaky sum.
  PUMICE_DEVICE float share(const Rows& rows, const Batch& batch, int32_t e,
                            int32_t channel) const {
    const int32_t count = count_of(channel);
    float l[kChunk], r[kChunk], of_entry[kChunk], attention[kChunk];
    rows.left[e].widen(l);
    rows.right[e].widen(r);
    if constexpr (kSpec.entries) rows.entry[e].widen(of_entry);
    if constexpr (kLeaky) rows.attention.widen(attention);
    float sum = 0;
    PUMICE_UNROLL
    for (int32_t i = 0; i < kChunk; ++i) {
      if ((kSpec.schedule.access < 16 || kSpec.picked) && i >= count) continue;
      if constexpr (kSpec.picked) {
        const int64_t at = int64_t{batch.row[e]} * a.channels + first + channel + i;
        if (a.picked[at] != batch.number[e]) continue;
      }
      if constexpr (kLeaky) {
        float z = l[i] + r[i];
        if constexpr (kSpec.entries) z += of_entry[i];
        sum += attention[i] * leaky(z, a.slope);
      } else {
        sum += l[i] * r[i];
      }
    }
    return count > 0 ? sum : 0;
  }

  /// `sum[e]` += this thread's share of entry e in the channels from `tile` of the head on.
  PUMICE_DEVICE void add_tile(const Batch& batch, int32_t tile, float (&sum)[kAhead]) const {
    Rows rows[kChunks];
    PUMICE_UNROLL
    for (int32_t j = 0; j < kChunks; ++j)
      load(rows[j], batch, channel_of(tile, j));
    PUMICE_UNROLL
    for (int32_t j = 0; j < kChunks; ++j) {
      PUMICE_UNROLL
      for (int32_t e = 0; e < kAhead; ++e)
        sum[e] += share(rows[j], batch, e, channel_of(tile, j));
    }
  }

  /// In lane l of the team, the sum of entry step + l % kAhead of the team.
  PUMICE_DEVICE float sum_of_batch(int32_t step) const {
    Batch batch;
    read(batch, step);
    float sum[kAhead];
    fill(sum, 0.0f);
    if constexpr (!kSpec.wide) {
      add_tile(batch, 0, sum);
    } else {
      PUMICE_ROLLED
      for (int32_t tile = 0; tile < a.head_channels; tile += kTile)
        add_tile(batch, tile, sum);
    }
    return sum_over_team<kTeam>(sum);
  }

  /// The sum of entry lane() of the team.
  PUMICE_DEVICE float sum_of_entry() const {
    float mine = 0;
    PUMICE_ROLLED
    for (int32_t step = 0; step * kTeams < window.count; step += kAhead) {
      const float sum = sum_of_batch(step);
      if (lane() - lane() % kAhead == step) mine = sum;
    }
    return mine;
  }

  PUMICE_DEVICE float scale_of(int32_t row) const {
    if (!a.averages) return 1;
    return 1.0f / static_cast<float>(a.pattern.row_begin[row + 1] - a.pattern.row_begin[row]);
  }
};

template <EdgeMapSpec kSpec> PUMICE_DEVICE void edge_map(const EdgeArguments& a) {
  using Map = EdgeMap<kSpec>;
  const EntryWindow window = window_of(a.pattern, block_index() * kEdgeBlockWarps + warp_index());
  if (window.count <= 0) return;
  const int32_t head = block_index_y();
  const Map map{a, window, head * a.head_channels};
  const int32_t at = Map::place_of(Map::lane());   // of the entry whose sum the lane will have
  const int32_t last = window.count - 1;
  const int64_t entry = number_of_entry(a.pattern, window.place + (at < last ? at : last));
  const float sum = map.sum_of_entry();
  const int32_t row = warp_shuffle(window.row, at);
  if (at > last) return;
  store_element(kSpec.type, a.output, entry * a.heads + head, sum * map.scale_of(row));
}

}   // namespace pumice
