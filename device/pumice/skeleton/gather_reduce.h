// GatherReduce on a device: see entry_spec.h for the picture. Every thread keeps the sums of its
// channels in registers and goes over the entries in their order; where several teams share a row,
// their sums meet in a fixed one, so that the bits are the same every time. Rows of features of
// several entries are on their way at a time.
#pragma once

#include <pumice/shared/entry_arguments.h>
#include <pumice/skeleton/entry_walk.h>
#include <pumice/thread/global_access.h>

namespace pumice {

/// The channels of one thread: `kChunks` chunks.
template <GatherReduceSpec kSpec> struct EntryChannels {
  static constexpr int32_t kChunk = entry_chunk(kSpec.type);
  static constexpr int32_t kChunks = kSpec.schedule.chunks;
  static constexpr int32_t kTile = kSpec.schedule.team * kChunks * kChunk;   // of a team
  /// Entries whose rows are on their way at a time, in 16 registers: what a thread keeps beside
  /// them leaves room for 32 warps on a multiprocessor then. With 32 of them there were 16 warps,
  /// and products took up to twice the time.
  static constexpr bool kIsWide = kSpec.headed || kSpec.operation == EntryOperation::picked;
  static constexpr int32_t kMost = 16 / (kChunks * kChunk);
  static constexpr int32_t kAhead = kSpec.schedule.access < 16 && kMost > 1 ? (kIsWide ? 1 : 2)
                                                                            : kMost;

  int32_t channel[kChunks];   // the first one of each chunk
  int32_t count[kChunks];     // how many there are; 0 and less: none
  int32_t head[kChunks];      // of whole heads

  PUMICE_DEVICE EntryChannels(int32_t tile, int32_t channels, int32_t heads) {
    const int32_t lane = thread_index() % kSpec.schedule.team;
    PUMICE_UNROLL
    for (int32_t j = 0; j < kChunks; ++j) {
      channel[j] = tile * kTile + (j * kSpec.schedule.team + lane) * kChunk;
      const int32_t left = channels - channel[j];
      count[j] = left < kChunk ? left : kChunk;
      head[j] = kSpec.whole_heads && left > 0 ? channel[j] / (channels / heads) : 0;
    }
  }
};

template <class T> PUMICE_DEVICE bool goes_before(T candidate, T found) {
  return candidate > found || (candidate != candidate && found == found);
}

template <GatherReduceSpec kSpec> struct GatherReduce {
  using Channels = EntryChannels<kSpec>;
  static constexpr int32_t kChunk = Channels::kChunk;
  static constexpr int32_t kChunks = Channels::kChunks;
  static constexpr bool kMost = kSpec.operation == EntryOperation::most;
  static constexpr bool kPicked = kSpec.operation == EntryOperation::picked;

  const GatherArguments& a;
  const Channels& of;
  float value[kChunks][kChunk];
  int32_t best[kMost ? kChunks : 1][kChunk];   // place − begin of the entry, of `most`

  PUMICE_DEVICE GatherReduce(const GatherArguments& arguments, const Channels& channels)
      : a(arguments), of(channels) {
    PUMICE_UNROLL
    for (int32_t j = 0; j < kChunks; ++j) {
      fill(value[j], 0.0f);
      if constexpr (kMost) {
        PUMICE_UNROLL
        for (int32_t i = 0; i < kChunk; ++i)
          best[j][i] = -1;
      }
    }
  }

  /// What an entry is weighed with, but for values by head.
  PUMICE_DEVICE float weight_of(int64_t number, int32_t column) const {
    float weight = 1;
    if constexpr (kSpec.weighted && !kSpec.headed)
      weight = load_element(kSpec.type, a.values, number);
    if (a.shared_by != nullptr)
      weight /= static_cast<float>(a.shared_by[column + 1] - a.shared_by[column]);
    return kMost ? weight * a.sign : weight;
  }

  PUMICE_DEVICE float head_weight(int64_t number, int32_t channel) const {
    if constexpr (!kSpec.headed) return 1;
    return load_element(kSpec.type, a.values, number * a.heads + channel / (a.channels / a.heads));
  }

  PUMICE_DEVICE void take(int32_t j, float weight, int64_t number, int32_t column,
                          const float (&x)[kChunk], int32_t place) {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kChunk; ++i) {
      if (i >= of.count[j]) continue;
      float w = weight;
      if constexpr (kSpec.headed && !kSpec.whole_heads) w *= head_weight(number, of.channel[j] + i);
      if constexpr (kMost) {
        const float candidate = w * x[i];
        if (best[j][i] < 0 || goes_before(candidate, value[j][i])) {
          value[j][i] = candidate;
          best[j][i] = place;
        }
      } else if constexpr (kPicked) {
        const int64_t at = int64_t{column} * a.channels + of.channel[j] + i;
        if (a.picked[at] == number) value[j][i] += w * x[i];
      } else {
        value[j][i] += w * x[i];
      }
    }
  }

  /// Entries whose columns and weights have been read, while the rows of others are on their way.
  struct Batch {
    int32_t column[Channels::kAhead];
    int64_t number[Channels::kAhead];
    float weight[Channels::kAhead];
  };

  /// `count` entries from `place` on, `ways` apart. kAll: of which there are kAhead.
  template <bool kAll> PUMICE_DEVICE void read(Batch& batch, int64_t place, int32_t count) const {
    PUMICE_UNROLL
    for (int32_t e = 0; e < Channels::kAhead; ++e) {
      if (!kAll && e >= count) continue;   // not break: barriers of nested branches spill
      const int64_t at = place + e * kSpec.schedule.ways;
      batch.column[e] = a.pattern.column[at];
      batch.number[e] = kSpec.weighted || kPicked ? number_of_entry(a.pattern, at) : 0;
    }
    PUMICE_UNROLL
    for (int32_t e = 0; e < Channels::kAhead; ++e) {
      if (!kAll && e >= count) continue;   // not break: barriers of nested branches spill
      batch.weight[e] = weight_of(batch.number[e], batch.column[e]);
    }
  }

  /// `first`: of the batch, counted from the beginning of the range.
  template <bool kAll>
  PUMICE_DEVICE void take_batch(const Batch& batch, int32_t first, int32_t count) {
    float x[Channels::kAhead][kChunks][kChunk];
    float weight[Channels::kAhead][kChunks];
    PUMICE_UNROLL
    for (int32_t e = 0; e < Channels::kAhead; ++e) {
      if (!kAll && e >= count) continue;   // not break: barriers of nested branches spill
      PUMICE_UNROLL
      for (int32_t j = 0; j < kChunks; ++j) {
        weight[e][j] = batch.weight[e];
        if constexpr (kSpec.whole_heads)
          weight[e][j] *=
              load_element(kSpec.type, a.values, batch.number[e] * a.heads + of.head[j]);
        load_chunk<kSpec.type, kSpec.schedule.access, true>(
            a.features, int64_t{batch.column[e]} * a.channels + of.channel[j], x[e][j],
            of.count[j]);
      }
    }
    PUMICE_UNROLL
    for (int32_t e = 0; e < Channels::kAhead; ++e) {
      if (!kAll && e >= count) continue;   // not break: barriers of nested branches spill
      PUMICE_UNROLL
      for (int32_t j = 0; j < kChunks; ++j)
        take(j, weight[e][j], batch.number[e], batch.column[e], x[e][j],
             first + e * kSpec.schedule.ways);
    }
  }

  /// The entries of one of the ways: every `ways`-th, from `way` on.
  PUMICE_DEVICE void take_range(const EntryRange& range, int32_t way) {
    constexpr int32_t kAhead = Channels::kAhead, kStep = kAhead * kSpec.schedule.ways;
    const auto entries = static_cast<int32_t>(range.end - range.begin);
    const auto left_at = [&](int32_t at) {
      const int32_t left = (entries - at + kSpec.schedule.ways - 1) / kSpec.schedule.ways;
      return left < kAhead ? left : kAhead;
    };
    const auto read_at = [&](Batch& batch, int32_t at) {
      const int32_t count = left_at(at);
      if (count == kAhead) return read<true>(batch, range.begin + at, count);
      if (count > 0) read<false>(batch, range.begin + at, count);
    };
    Batch next;
    read_at(next, way);
    PUMICE_ROLLED
    for (int32_t at = way; at < entries; at += kStep) {
      const Batch batch = next;
      read_at(next, at + kStep);
      const int32_t count = left_at(at);
      if (count == kAhead) {
        take_batch<true>(batch, at, count);
      } else {
        take_batch<false>(batch, at, count);
      }
    }
  }

  /// What the ways have found, in all of them. With the whole warp.
  PUMICE_DEVICE void meet() {
    PUMICE_UNROLL
    for (int32_t mask = kSpec.schedule.team; mask < kSpec.schedule.team * kSpec.schedule.ways;
         mask *= 2) {
      PUMICE_UNROLL
      for (int32_t j = 0; j < kChunks; ++j) {
        PUMICE_UNROLL
        for (int32_t i = 0; i < kChunk; ++i) {
          const float other = warp_shuffle_xor(value[j][i], mask);
          if constexpr (kMost) {
            const int32_t place = warp_shuffle_xor(best[j][i], mask);
            const bool is_better =
                place >= 0 && (best[j][i] < 0 || goes_before(other, value[j][i]) ||
                               (!goes_before(value[j][i], other) && place < best[j][i]));
            if (is_better) {
              value[j][i] = other;
              best[j][i] = place;
            }
          } else {
            value[j][i] += other;
          }
        }
      }
    }
  }

  PUMICE_DEVICE void store_sources(int64_t* to, int64_t element, int32_t j, int64_t begin) const {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kChunk; ++i) {
      if (i >= of.count[j]) continue;
      to[element + i] = best[j][i] < 0 ? -1 : number_of_entry(a.pattern, begin + best[j][i]);
    }
  }

  PUMICE_DEVICE void store(const EntryRange& range) {
    const bool is_part = range.part >= 0;
    const float scale =
        a.averages && !is_part && range.entries > 0 ? 1.0f / static_cast<float>(range.entries) : 1;
    PUMICE_UNROLL
    for (int32_t j = 0; j < kChunks; ++j) {
      if (of.count[j] <= 0) continue;
      const int64_t at = (is_part ? range.part : range.row) * int64_t{a.channels} + of.channel[j];
      PUMICE_UNROLL
      for (int32_t i = 0; i < kChunk; ++i)
        value[j][i] *= kMost ? a.sign : scale;
      if (is_part) {
        PUMICE_UNROLL
        for (int32_t i = 0; i < kChunk; ++i) {
          if (i < of.count[j]) a.partial.value[at + i] = value[j][i];
        }
      } else {
        store_chunk<kSpec.type, kSpec.schedule.access>(a.output, at, value[j], of.count[j]);
      }
      if constexpr (kMost) store_sources(is_part ? a.partial.source : a.source, at, j, range.begin);
    }
  }
};

template <GatherReduceSpec kSpec> PUMICE_DEVICE void gather_reduce(const GatherArguments& a) {
  using Channels = EntryChannels<kSpec>;
  constexpr int32_t kThreads = kSpec.schedule.team * kSpec.schedule.ways;   // of an item
  const int64_t items = entry_items(a.pattern);
  const int64_t step = int64_t{grid_size()} * block_size() / kThreads;
  const int32_t way = thread_index() % kThreads / kSpec.schedule.team;
  const Channels channels(block_index_y(), a.channels, a.heads);
  PUMICE_ROLLED
  for (int64_t at = global_thread_index() / kThreads; warp_any(at < items); at += step) {
    EntryRange range;
    if (at < items) range = range_of_item(a.pattern, at);
    const bool takes = at < items && !range.is_left_out;
    GatherReduce<kSpec> reduce(a, channels);
    if (takes) reduce.take_range(range, way);
    reduce.meet();
    if (takes && way == 0) reduce.store(range);
  }
}

/// The parts of each long row, in their order.
template <GatherReduceSpec kSpec> PUMICE_DEVICE void finish_long_rows(const GatherArguments& a) {
  const int64_t items = int64_t{a.pattern.long_rows.counts[1]} * a.channels;
  const int64_t step = int64_t{grid_size()} * block_size();
  PUMICE_ROLLED
  for (int64_t at = global_thread_index(); at < items; at += step) {
    const LongRow row = a.pattern.long_rows.row[at / a.channels];
    const int64_t channel = at % a.channels;
    float value = 0;
    int64_t source = -1;
    PUMICE_UNROLL_BY(4)
    for (int32_t part = row.first; part < row.first + row.parts; ++part) {
      const int64_t from = int64_t{part} * a.channels + channel;
      const float of_part = a.partial.value[from];
      if constexpr (kSpec.operation == EntryOperation::most) {
        if (source >= 0 && !goes_before(of_part * a.sign, value * a.sign)) continue;
        value = of_part;
        source = a.partial.source[from];
      } else {
        value += of_part;
      }
    }
    const int64_t to = row.row * int64_t{a.channels} + channel;
    if (a.averages)
      value /= static_cast<float>(a.pattern.row_begin[row.row + 1] - a.pattern.row_begin[row.row]);
    store_element(kSpec.type, a.output, to, value);
    if constexpr (kSpec.operation == EntryOperation::most) a.source[to] = source;
  }
}

}   // namespace pumice
