// GatherReduce on a device: see entry_spec.h for the picture. Every thread keeps the sums of its
// channels in registers and goes over the entries of a run of rows in their order, across the ends
// of rows, so that rows of features of several entries are on their way at a time however short the
// rows of the pattern are. The bits are the same every time.
#pragma once

#include <pumice/shared/entry_arguments.h>
#include <pumice/skeleton/entry_walk.h>
#include <pumice/thread/global_access.h>

namespace pumice {

/// The chunk of channels of one thread.
template <GatherReduceSpec kSpec> struct EntryChannels {
  static constexpr int32_t kChunk = entry_chunk(kSpec.type);
  static constexpr int32_t kAhead = kSpec.schedule.ahead;

  int32_t channel;    // the first one
  int32_t count;      // how many there are; 0 and less: none
  int32_t head = 0;   // of whole heads

  PUMICE_DEVICE bool is_idle() const { return count <= 0; }

  PUMICE_DEVICE EntryChannels(int32_t tile, int32_t channels, int32_t heads) {
    const int32_t team = kSpec.schedule.team;
    channel = (tile * team + thread_index() % team) * kChunk;
    const int32_t left = channels - channel;
    count = left < kChunk ? left : kChunk;
    if constexpr (kSpec.whole_heads) head = channel / (channels / heads);
  }
};

template <class T> PUMICE_DEVICE bool goes_before(T candidate, T found) {
  return candidate > found || (candidate != candidate && found == found);
}

/// `sum` of channel `channel` and what is there: the residual, which is read just before its place
/// may be written to, and the shift. `at`: in the output.
template <GatherReduceSpec kSpec>
PUMICE_DEVICE float with_what_is_there(const GatherArguments& a, float sum, int64_t at,
                                       int32_t channel) {
  if (a.residual != nullptr) sum += load_element(kSpec.type, a.residual, at);
  return a.shift != nullptr ? sum + a.shift[channel] : sum;
}

template <GatherReduceSpec kSpec> struct GatherReduce {
  using Channels = EntryChannels<kSpec>;
  static constexpr int32_t kChunk = Channels::kChunk;
  static constexpr bool kMost = kSpec.operation == EntryOperation::most;
  static constexpr bool kPicked = kSpec.operation == EntryOperation::picked;

  const GatherArguments& a;
  const Channels& of;
  float value[kChunk];
  int32_t best[kChunk];   // place of the entry in the run, of `most`

  PUMICE_DEVICE GatherReduce(const GatherArguments& arguments, const Channels& channels)
      : a(arguments), of(channels) {
    clear();
  }

  /// Of a row without entries `most` keeps what the sign makes +0 of.
  PUMICE_DEVICE void clear() {
    fill(value, kMost ? 0.0f * a.sign : 0.0f);
    if constexpr (kMost) {
      PUMICE_UNROLL
      for (int32_t i = 0; i < kChunk; ++i)
        best[i] = -1;
    }
  }

  PUMICE_DEVICE int64_t number_of(int64_t place) const {
    return kSpec.numbered ? a.pattern.number[place] : place;
  }

  /// What an entry is weighed with, but for values by head.
  PUMICE_DEVICE float weight_of(int64_t number, int32_t column) const {
    float weight = 1;
    if constexpr (kSpec.weighted && !kSpec.headed)
      weight = load_element(kSpec.type, a.values, number);
    if constexpr (kSpec.shared)
      weight /= static_cast<float>(a.shared_by[column + 1] - a.shared_by[column]);
    return kMost ? weight * a.sign : weight;
  }

  PUMICE_DEVICE float head_weight(int64_t number, int32_t channel) const {
    if constexpr (!kSpec.headed) return 1;
    return load_element(kSpec.type, a.values, number * a.heads + channel / (a.channels / a.heads));
  }

  /// Whether channel i of the chunk is there: accesses of 16 bytes move all of it.
  PUMICE_DEVICE bool is_there(int32_t i) const {
    return kSpec.schedule.access == 16 || i < of.count;
  }

  PUMICE_DEVICE void take(float weight, int64_t number, int32_t column, const float (&x)[kChunk],
                          int32_t place) {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kChunk; ++i) {
      if (!is_there(i)) continue;
      float w = weight;
      if constexpr (kSpec.headed && !kSpec.whole_heads) w *= head_weight(number, of.channel + i);
      if constexpr (kMost) {
        const float candidate = w * x[i];
        if (best[i] < 0 || goes_before(candidate, value[i])) {
          value[i] = candidate;
          best[i] = place;
        }
      } else if constexpr (kPicked) {
        const int64_t at = int64_t{column} * a.channels + of.channel + i;
        if (a.picked[at] == number) value[i] += w * x[i];
      } else {
        value[i] += w * x[i];
      }
    }
  }

  /// Entries at a time: their columns and weights, and their rows of features.
  struct Batch {
    int32_t column[Channels::kAhead];
    int64_t number[Channels::kAhead];
    float weight[Channels::kAhead];
    RawChunk<kSpec.type> x[Channels::kAhead];
  };

  /// `count` entries from `place` on, and the last of them over again: without branches, all of
  /// their rows are on their way at a time.
  PUMICE_DEVICE void read(Batch& batch, int64_t place, int32_t count) const {
    const auto stride = static_cast<uint32_t>(a.channels) * element_bytes(kSpec.type);
    PUMICE_UNROLL
    for (int32_t e = 0; e < Channels::kAhead; ++e) {
      const int64_t at = place + (e < count ? e : count - 1);
      batch.column[e] = a.pattern.column[at];
      batch.number[e] = kSpec.weighted || kPicked ? number_of(at) : 0;
    }
    PUMICE_UNROLL
    for (int32_t e = 0; e < Channels::kAhead; ++e) {
      const uint64_t row = uint64_t{static_cast<uint32_t>(batch.column[e])} * stride;
      batch.x[e].template load<kSpec.schedule.access>(
          static_cast<const char*>(a.features) + of.channel * element_bytes(kSpec.type) + row,
          of.count);
    }
    PUMICE_UNROLL
    for (int32_t e = 0; e < Channels::kAhead; ++e)
      batch.weight[e] = weight_of(batch.number[e], batch.column[e]);
  }

  PUMICE_DEVICE void take_entry(const Batch& batch, int32_t e, int32_t place) {
    float weight = batch.weight[e];
    if constexpr (kSpec.whole_heads)
      weight *= load_element(kSpec.type, a.values, batch.number[e] * a.heads + of.head);
    float x[kChunk];
    batch.x[e].widen(x);
    take(weight, batch.number[e], batch.column[e], x, place);
  }

  PUMICE_DEVICE void finish_row(EntryCursor& cursor) {
    store(cursor.row, cursor.row_end - cursor.row_first, cursor.base);
    clear();
    cursor.next_row();
  }

  /// The next entries, row by row.
  PUMICE_DEVICE void take_batch(EntryCursor& cursor) {
    const int32_t left = cursor.end - cursor.at;
    const int32_t count = left < Channels::kAhead ? left : Channels::kAhead;
    Batch batch;
    read(batch, cursor.base + cursor.at, count);
    int32_t taken = 0;
    PUMICE_ROLLED
    while (true) {
      const int32_t of_row = cursor.row_end - cursor.at;
      const int32_t until = of_row < count ? of_row : count;
      PUMICE_UNROLL
      for (int32_t e = 0; e < Channels::kAhead; ++e) {
        if (e >= taken && e < until) take_entry(batch, e, cursor.at + e);
      }
      taken = until;
      if (taken == count) break;
      finish_row(cursor);
      if (cursor.is_left_out()) break;
    }
    cursor.at += taken;
  }

  PUMICE_DEVICE void run(const EntryRun& run) {
    EntryCursor cursor(a.pattern, run);
    PUMICE_ROLLED
    while (cursor.at < cursor.end) {
      if (cursor.is_left_out()) {
        cursor.pass_over();
      } else {
        take_batch(cursor);
      }
    }
    if (run.part >= 0) return store_part(run.part, run.place);
    PUMICE_ROLLED
    while (cursor.row < cursor.end_row)
      finish_row(cursor);
  }

  PUMICE_DEVICE void store_sources(int64_t* to, int64_t element, int64_t begin) const {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kChunk; ++i) {
      if (i >= of.count) continue;
      to[element + i] = best[i] < 0 ? -1 : number_of(begin + best[i]);
    }
  }

  /// The residual is read just before its place may be written to.
  PUMICE_DEVICE void add_what_is_there(int64_t at) {
    if (a.residual != nullptr) {
      float x[kChunk];
      fill(x, 0.0f);
      load_chunk<kSpec.type, kSpec.schedule.access>(a.residual, at, x, of.count);
      PUMICE_UNROLL
      for (int32_t i = 0; i < kChunk; ++i)
        value[i] += x[i];
    }
    if (a.shift == nullptr) return;
    PUMICE_UNROLL
    for (int32_t i = 0; i < kChunk; ++i) {
      if (is_there(i)) value[i] += a.shift[of.channel + i];
    }
  }

  /// `base`: what places are counted from.
  PUMICE_DEVICE void store(int32_t row, int32_t entries, int64_t base) {
    const float scale = kMost                       ? a.sign
                        : a.averages && entries > 0 ? 1.0f / static_cast<float>(entries)
                                                    : 1.0f;
    const int64_t at = int64_t{row} * a.channels + of.channel;
    PUMICE_UNROLL
    for (int32_t i = 0; i < kChunk; ++i)
      value[i] *= scale;
    if constexpr (kSpec.added) add_what_is_there(at);
    store_chunk<kSpec.type, kSpec.schedule.access>(a.output, at, value, of.count);
    if constexpr (kMost) store_sources(a.source, at, base);
  }

  /// What a part has found, which finish_long_rows takes up.
  PUMICE_DEVICE void store_part(int64_t part, int64_t base) const {
    const int64_t at = part * a.channels + of.channel;
    PUMICE_UNROLL
    for (int32_t i = 0; i < kChunk; ++i) {
      if (i < of.count) a.partial.value[at + i] = kMost ? value[i] * a.sign : value[i];
    }
    if constexpr (kMost) store_sources(a.partial.source, at, base);
  }
};

/// The first teams take parts of long rows, which take longest; of how many there are, only the
/// device knows. Each of the others has a run of rows.
template <GatherReduceSpec kSpec> PUMICE_DEVICE void gather_reduce(const GatherArguments& a) {
  const EntryChannels<kSpec> channels(block_index_y(), a.channels, a.heads);
  if (channels.is_idle()) return;
  const int64_t team = global_thread_index() / kSpec.schedule.team;
  const bool takes_parts = team < a.part_teams;
  const int64_t items =
      takes_parts ? part_count(a.pattern) : a.part_teams + entry_runs(a.pattern, a.units);
  PUMICE_ROLLED
  for (int64_t item = team; item < items; item += takes_parts ? a.part_teams : items)
    GatherReduce<kSpec>(a, channels)
        .run(takes_parts ? part_of_item(a.pattern, item)
                         : run_of_item(a.pattern, item - a.part_teams, a.units));
}

/// The parts of a long row, in their order, in channels `channel` + 32 i below `bound`.
template <GatherReduceSpec kSpec, int32_t kCount>
PUMICE_DEVICE void finish_row(const GatherArguments& a, const LongRow& row, int32_t channel,
                              int32_t bound) {
  constexpr bool kMost = kSpec.operation == EntryOperation::most;
  if (bound > a.channels) bound = a.channels;
  float value[kCount];
  int64_t source[kCount];
  PUMICE_UNROLL
  for (int32_t i = 0; i < kCount; ++i) {
    value[i] = 0;
    source[i] = -1;
  }
  PUMICE_UNROLL_BY(4)
  for (int32_t part = row.first; part < row.first + row.parts; ++part) {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i) {
      if (channel + i * kWarpThreads >= bound) continue;
      const int64_t from = int64_t{part} * a.channels + channel + i * kWarpThreads;
      const float of_part = a.partial.value[from];
      if constexpr (kMost) {
        if (source[i] >= 0 && !goes_before(of_part * a.sign, value[i] * a.sign)) continue;
        value[i] = of_part;
        source[i] = a.partial.source[from];
      } else {
        value[i] += of_part;
      }
    }
  }
  const int64_t entries = a.pattern.row_begin[row.row + 1] - a.pattern.row_begin[row.row];
  PUMICE_UNROLL
  for (int32_t i = 0; i < kCount; ++i) {
    if (channel + i * kWarpThreads >= bound) continue;
    const int64_t to = row.row * int64_t{a.channels} + channel + i * kWarpThreads;
    if (a.averages) value[i] /= static_cast<float>(entries);
    if constexpr (kSpec.added)
      value[i] = with_what_is_there<kSpec>(a, value[i], to, channel + i * kWarpThreads);
    store_element(kSpec.type, a.output, to, value[i]);
    if constexpr (kMost) a.source[to] = source[i];
  }
}

/// All long rows.
template <GatherReduceSpec kSpec> PUMICE_DEVICE void finish_long_rows(const GatherArguments& a) {
  const int64_t items = int64_t{a.pattern.long_rows.counts[1]} * a.channels;
  const int64_t step = int64_t{grid_size()} * block_size();
  PUMICE_ROLLED
  for (int64_t at = global_thread_index(); at < items; at += step)
    finish_row<kSpec, 1>(a, a.pattern.long_rows.row[at / a.channels],
                         static_cast<int32_t>(at % a.channels), a.channels);
}

}   // namespace pumice
