// GatherReduce by whole warps: see entry_spec.h. The lanes of a warp read columns, numbers and
// weights of 32 entries beside each other in one access each, and hand them out by shuffles; so
// rows of features wait for those once in 32 entries. The teams of the warp take an entry each at a
// time and end rows together. The last warp at a long row adds up its parts, where somebody counts.
// The bits are the same every time.
#pragma once

#include <pumice/skeleton/gather_reduce.h>

namespace pumice {

template <GatherReduceSpec kSpec> struct GatherWarp {
  using Reduce = GatherReduce<kSpec>;
  static constexpr int32_t kTeam = kSpec.schedule.team, kWays = kSpec.schedule.ways;
  static constexpr int32_t kAhead = kSpec.schedule.ahead, kChunk = Reduce::kChunk;
  static constexpr int32_t kBatch = kWays * kAhead;
  /// Channels of a chunk that a lane has when the sums of all teams are added up.
  static constexpr int32_t kKept = kWays < kChunk ? kChunk / kWays : 1;
  static constexpr int32_t kFar = EntryCursor::kFar;
  static constexpr bool kMost = Reduce::kMost;
  static constexpr bool kWeighs = (kSpec.weighted && !kSpec.headed) || kSpec.shared;
  static constexpr bool kNumbers = kSpec.weighted || Reduce::kPicked;
  static constexpr bool kTakesNumbers = kSpec.headed || Reduce::kPicked;

  /// Entries of a window, lane j the j-th, and the last one over again.
  struct Window {
    int32_t column = 0;
    int64_t number = 0;
    float weight = 1;
  };
  /// Entries at a time; of this lane those that are its team's.
  struct Batch {
    int32_t column[kAhead];
    int64_t number[kAhead];
    float weight[kAhead];
    RawChunk<kSpec.type> x[kAhead];
  };

  const GatherArguments& a;
  Reduce reduce;
  int32_t way;        // which team of the warp this lane is of
  int64_t base = 0;   // entries are counted from here on

  PUMICE_DEVICE GatherWarp(const GatherArguments& arguments, const EntryChannels<kSpec>& channels)
      : a(arguments), reduce(arguments, channels), way(lane_index() / kTeam) {}

  PUMICE_DEVICE int32_t near(int64_t place) const {
    const int64_t from = place - base;
    return from < kFar ? static_cast<int32_t>(from) : kFar;
  }

  /// Of lane j, where row `row` + j ends.
  PUMICE_DEVICE int32_t read_ends(int32_t row, int32_t end_row) const {
    const int32_t of = row + 1 + lane_index();
    return near(a.pattern.row_begin[of < end_row ? of : end_row]);
  }

  /// Entries from `at` on, of which there are some before `end`.
  PUMICE_DEVICE void read_window(Window& window, int32_t at, int32_t end) const {
    const int32_t last = end - at - 1;
    const int64_t place = base + at + (lane_index() < last ? lane_index() : last);
    window.column = a.pattern.column[place];
    if constexpr (kNumbers) window.number = reduce.number_of(place);
    if constexpr (kWeighs) window.weight = reduce.weight_of(window.number, window.column);
  }

  /// The entries of a window from its `first` on.
  PUMICE_DEVICE void read(Batch& batch, const Window& window, int32_t first) const {
    const auto stride = static_cast<uint32_t>(a.channels) * element_bytes(kSpec.type);
    const char* const from =
        static_cast<const char*>(a.features) + reduce.of.channel * element_bytes(kSpec.type);
    PUMICE_UNROLL
    for (int32_t e = 0; e < kAhead; ++e) {
      batch.column[e] = warp_shuffle(window.column, first + e * kWays + way);
      const uint64_t row = uint64_t{static_cast<uint32_t>(batch.column[e])} * stride;
      batch.x[e].template load<kSpec.schedule.access>(from + row, reduce.of.count);
    }
    PUMICE_UNROLL
    for (int32_t e = 0; e < kAhead; ++e) {
      const int32_t lane = first + e * kWays + way;
      batch.number[e] = 0;
      if constexpr (kTakesNumbers) batch.number[e] = warp_shuffle(window.number, lane);
      batch.weight[e] = kMost ? a.sign : 1.0f;
      if constexpr (kWeighs) batch.weight[e] = warp_shuffle(window.weight, lane);
      if constexpr (kSpec.whole_heads)
        batch.weight[e] *=
            load_element(kSpec.type, a.values, batch.number[e] * a.heads + reduce.of.head);
    }
  }

  /// Entries [first, until) of a batch that begins at `begin`.
  PUMICE_DEVICE void take(const Batch& batch, int32_t first, int32_t until, int32_t begin) {
    PUMICE_UNROLL
    for (int32_t e = 0; e < kAhead; ++e) {
      const int32_t index = e * kWays + way;
      if (index < first || index >= until) continue;
      float x[kChunk];
      batch.x[e].widen(x);
      reduce.take(batch.weight[e], batch.number[e], batch.column[e], x, begin + index);
    }
  }

  /// Adds the sums of teams that are `kDistance` apart, each to half of the channels, so that no
  /// lane adds what another has added.
  template <int32_t kDistance, int32_t kWidth> PUMICE_DEVICE int32_t add_up(int32_t first) {
    if constexpr (kDistance == 0) {
      return first;
    } else if constexpr (kWidth == 1) {
      reduce.value[0] += warp_shuffle_xor(reduce.value[0], kDistance * kTeam);
      return add_up<kDistance / 2, 1>(first);
    } else {
      constexpr int32_t kHalf = kWidth / 2;
      const bool takes_upper = (way & kDistance) != 0;
      PUMICE_UNROLL
      for (int32_t i = 0; i < kHalf; ++i) {
        const float own = takes_upper ? reduce.value[i + kHalf] : reduce.value[i];
        const float given = takes_upper ? reduce.value[i] : reduce.value[i + kHalf];
        reduce.value[i] = own + warp_shuffle_xor(given, kDistance * kTeam);
      }
      return add_up<kDistance / 2, kHalf>(takes_upper ? first + kHalf : first);
    }
  }

  /// Hands what the teams have found together to `store(channel of the chunk, sum)`.
  template <class Store> PUMICE_DEVICE void store_sums(const Store& store) {
    const int32_t first = add_up<kWays / 2, kChunk>(0);
    constexpr int32_t kSame = kWays / (kChunk / kKept);   // teams that have the same sums
    if (way % kSame != 0) return;
    PUMICE_UNROLL
    for (int32_t i = 0; i < kKept; ++i) {
      if (first + i < reduce.of.count) store(first + i, reduce.value[i]);
    }
  }

  PUMICE_DEVICE void store_row(int32_t row, int32_t entries) {
    if constexpr (kWays == 1) {
      if (!reduce.of.is_idle()) reduce.store(row, entries, base);
    } else {
      const float scale = a.averages && entries > 0 ? 1.0f / static_cast<float>(entries) : 1.0f;
      const int64_t at = int64_t{row} * a.channels + reduce.of.channel;
      store_sums([&](int32_t i, float sum) {
        sum *= scale;
        if constexpr (kSpec.added)
          sum = with_what_is_there<kSpec>(a, sum, at + i, reduce.of.channel + i);
        store_element(kSpec.type, a.output, at + i, sum);
      });
    }
    reduce.clear();
  }

  /// What part `part` has found.
  PUMICE_DEVICE void store_part(int64_t part) {
    if constexpr (kWays == 1) {
      reduce.store_part(part, base);
    } else {
      const int64_t at = part * a.channels + reduce.of.channel;
      store_sums([&](int32_t i, float sum) { a.partial.value[at + i] = sum; });
    }
    reduce.clear();
  }

  /// Rows are stored; what a part has found stays.
  PUMICE_DEVICE void run(const EntryRun& run) {
    const bool is_part = run.part >= 0;
    const bool may_be_long = !is_part && a.pattern.long_rows.counts != nullptr;
    const int32_t longest = may_be_long ? a.pattern.long_rows.part_entries : kFar;
    const auto end_row = static_cast<int32_t>(run.end_row);
    auto row = static_cast<int32_t>(run.row);
    base = run.place;
    int32_t end = near(run.end);
    int32_t of_ends = row, ends = is_part ? end : read_ends(row, end_row);
    int32_t at = 0, begin = 0, read_until = 0;   // of the batch
    Window window;
    Batch batch;
    PUMICE_ROLLED
    for (; row < end_row; ++row) {
      if (row - of_ends == kWarpThreads) {
        of_ends = row;
        ends = read_ends(row, end_row);
      }
      const int32_t row_end = warp_shuffle(ends, row - of_ends);
      const int32_t entries = row_end - at;
      if (entries > longest) {   // its parts are runs by themselves
        base = a.pattern.row_begin[row + 1];
        end = near(a.pattern.row_begin[end_row]);
        of_ends = row + 1;
        ends = read_ends(of_ends, end_row);
        at = read_until = 0;
        continue;
      }
      PUMICE_ROLLED
      while (at < row_end) {
        if (at == read_until) {
          begin = at;
          read_until = end - at < kBatch ? end : at + kBatch;
          if (begin % kWarpThreads == 0) read_window(window, begin, end);
          read(batch, window, begin % kWarpThreads);
        }
        const int32_t until = row_end < read_until ? row_end : read_until;
        take(batch, at - begin, until - begin, begin);
        at = until;
      }
      if (!is_part) store_row(row, entries);
    }
  }
};

/// Where part `part` of a long row is the last of it to be there, adds up all of them.
template <GatherReduceSpec kSpec>
PUMICE_DEVICE void join_parts(const GatherArguments& a, int64_t part) {
  const RowPart own = a.pattern.long_rows.part[part];
  const int64_t entries = a.pattern.row_begin[own.row + 1] - a.pattern.row_begin[own.row];
  const int32_t of_part = a.pattern.long_rows.part_entries;
  const LongRow row{own.row, static_cast<int32_t>(part) - own.part,
                    static_cast<int32_t>((entries + of_part - 1) / of_part)};
  fence_to_device();
  warp_sync();
  uint32_t* const counter = a.arrived + int64_t{block_index_y()} * a.most_parts + row.first;
  uint32_t before = 0;
  if (lane_index() == 0) before = atomic_add(counter, 1u);
  before = warp_shuffle(before, 0);
  if (before + 1 != static_cast<uint32_t>(row.parts)) return;
  if (lane_index() == 0) *counter = 0;   // for the next product
  fence_to_device();
  constexpr int32_t kTile = kSpec.schedule.team * GatherReduce<kSpec>::kChunk;
  const int32_t first = block_index_y() * kTile;
  finish_row<kSpec, (kTile + kWarpThreads - 1) / kWarpThreads>(a, row, first + lane_index(),
                                                               first + kTile);
}

/// As gather_reduce, with warps for teams. Lanes beyond the channels read the first chunk, so that
/// the warp stays together, and store nothing.
template <GatherReduceSpec kSpec> PUMICE_DEVICE void gather_by_warps(const GatherArguments& a) {
  EntryChannels<kSpec> channels(block_index_y(), a.channels, a.heads);
  if (channels.is_idle()) channels.channel = channels.head = 0;
  int64_t item = global_thread_index() / kWarpThreads;
  const bool takes_parts = item < a.part_teams;
  if (!takes_parts && item - a.part_teams >= entry_runs(a.pattern, a.units)) return;
  GatherWarp<kSpec> warp(a, channels);
  PUMICE_ROLLED
  while (!takes_parts || item < part_count(a.pattern)) {
    warp.run(takes_parts ? part_of_item(a.pattern, item)
                         : run_of_item(a.pattern, item - a.part_teams, a.units));
    if (!takes_parts) return;
    warp.store_part(item);
    if (a.arrived != nullptr) join_parts<kSpec>(a, item);
    item += a.part_teams;
  }
}

}   // namespace pumice
