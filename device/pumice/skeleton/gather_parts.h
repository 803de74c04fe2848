// GatherReduce over parts on a device: see part_spec.h. Slots follow each other across the lines of
// a part, so that rows of features of several are on their way at a time however narrow it is;
// padding is looked at, and never summed. The bits are the same every time.
#pragma once

#include <pumice/shared/part_spec.h>
#include <pumice/skeleton/gather_reduce.h>
#include <pumice/skeleton/piece_walk.h>

namespace pumice {

/// Whether a candidate takes the place of what was found: the first in the order of the pattern is
/// kept of those that are equal, in whichever order they come.
template <class PlaceOf>
PUMICE_DEVICE bool takes_place(float candidate, float found, const PlaceOf& is_before) {
  if (goes_before(candidate, found)) return true;
  const bool is_equal = candidate == found || (candidate != candidate && found != found);
  return is_equal && is_before();
}

template <GatherPartsSpec kSpec> struct GatherParts {
  static constexpr GatherReduceSpec kReduce = kSpec.reduce;
  using Reduce = GatherReduce<kReduce>;
  using Batch = typename Reduce::Batch;
  static constexpr int32_t kChunk = Reduce::kChunk;
  static constexpr int32_t kAhead = Reduce::Channels::kAhead;
  static constexpr bool kMost = Reduce::kMost;

  const GatherPartsArguments& a;
  Reduce reduce;

  PUMICE_DEVICE GatherParts(const GatherPartsArguments& arguments,
                            const EntryChannels<kReduce>& channels)
      : a(arguments), reduce(arguments.gather, channels) {}

  PUMICE_DEVICE int64_t number_of(int64_t slot) const {
    return kReduce.numbered ? a.table.number[slot] : slot;
  }
  PUMICE_DEVICE int64_t place_of(int64_t number) const {
    return a.table.place == nullptr ? number : a.table.place[number];
  }

  /// As GatherReduce reads entries; a slot of padding has a negative column, and the first row of
  /// features is read in its place.
  PUMICE_DEVICE void read(Batch& batch, int64_t slot, int32_t count) const {
    const auto stride = static_cast<uint32_t>(a.gather.channels) * element_bytes(kReduce.type);
    PUMICE_UNROLL
    for (int32_t e = 0; e < kAhead; ++e) {
      const int64_t at = slot + (e < count ? e : count - 1);
      batch.column[e] = a.table.column[at];
      batch.number[e] = kReduce.weighted ? number_of(at) : 0;
    }
    PUMICE_UNROLL
    for (int32_t e = 0; e < kAhead; ++e) {
      const uint32_t column = batch.column[e] < 0 ? 0u : static_cast<uint32_t>(batch.column[e]);
      batch.x[e].template load<kReduce.schedule.access>(
          static_cast<const char*>(a.gather.features) +
              reduce.of.channel * element_bytes(kReduce.type) + uint64_t{column} * stride,
          reduce.of.count);
    }
    PUMICE_UNROLL
    for (int32_t e = 0; e < kAhead; ++e) {
      if (batch.number[e] < 0) batch.number[e] = 0;
      batch.weight[e] = reduce.weight_of(batch.number[e], batch.column[e]);
    }
  }

  PUMICE_DEVICE void take(const Batch& batch, int32_t e, const PieceCursor& cursor) {
    if constexpr (kMost) {
      take_most(batch, e, cursor);
    } else {
      reduce.take_entry(batch, e, cursor.at + e);
    }
  }

  PUMICE_DEVICE void take_most(const Batch& batch, int32_t e, const PieceCursor& cursor) {
    float weight = batch.weight[e];
    if constexpr (kReduce.whole_heads)
      weight *= load_element(kReduce.type, a.gather.values,
                             batch.number[e] * a.gather.heads + reduce.of.head);
    float x[kChunk];
    batch.x[e].widen(x);
    PUMICE_UNROLL
    for (int32_t i = 0; i < kChunk; ++i) {
      if (!reduce.is_there(i)) continue;
      float w = weight;
      if constexpr (kReduce.headed && !kReduce.whole_heads)
        w *= reduce.head_weight(batch.number[e], reduce.of.channel + i);
      const float candidate = w * x[i];
      const auto is_before = [&] {
        return place_of(number_of(cursor.base + cursor.at + e)) <
               place_of(number_of(cursor.base + reduce.best[i]));
      };
      if (reduce.best[i] < 0 || takes_place(candidate, reduce.value[i], is_before)) {
        reduce.value[i] = candidate;
        reduce.best[i] = cursor.at + e;
      }
    }
  }

  /// The next slots, piece by piece.
  PUMICE_DEVICE void take_batch(PieceCursor& cursor, int32_t end) {
    const int32_t left = end - cursor.at;
    const int32_t count = left < kAhead ? left : kAhead;
    Batch batch;
    read(batch, cursor.base + cursor.at, count);
    if (batch.column[0] < 0) {   // the rest of the piece is padding
      cursor.at = cursor.piece_end;
      return;
    }
    int32_t taken = 0;
    PUMICE_ROLLED
    while (true) {
      const int32_t of_piece = cursor.piece_end - cursor.at;
      const int32_t until = of_piece < count ? of_piece : count;
      PUMICE_UNROLL
      for (int32_t e = 0; e < kAhead; ++e) {
        if (e >= taken && e < until && batch.column[e] >= 0) take(batch, e, cursor);
      }
      taken = until;
      if (taken == count) break;
      finish_piece(cursor);
    }
    cursor.at += taken;
  }

  PUMICE_DEVICE void run(const PieceRun& run) {
    PieceCursor cursor(run);
    const int32_t pieces = run.last - run.piece;
    const int32_t end = run.bound == nullptr ? pieces * run.width
                                             : static_cast<int32_t>(run.bound[pieces] - run.base);
    PUMICE_ROLLED
    while (cursor.at < end) {
      PUMICE_ROLLED
      while (cursor.at == cursor.piece_end)
        finish_piece(cursor);
      take_batch(cursor, end);
    }
    PUMICE_ROLLED
    while (!cursor.is_done())
      finish_piece(cursor);
  }

  PUMICE_DEVICE void finish_piece(PieceCursor& cursor) {
    const int32_t target = a.table.target[cursor.piece];
    if (target < 0) {
      store_partial(~target, cursor.base);
    } else {
      store(target, cursor.base);
    }
    reduce.clear();
    cursor.next_piece();
  }

  PUMICE_DEVICE void store_sources(int64_t* to, int64_t element, int64_t base) const {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kChunk; ++i) {
      if (i < reduce.of.count)
        to[element + i] = reduce.best[i] < 0 ? -1 : number_of(base + reduce.best[i]);
    }
  }

  PUMICE_DEVICE void store(int64_t row, int64_t base) {
    const int64_t at = row * a.gather.channels + reduce.of.channel;
    float scale = kMost ? a.gather.sign : 1.0f;
    if (a.gather.averages) {
      const int64_t entries = a.table.row_begin[row + 1] - a.table.row_begin[row];
      if (entries > 0) scale = 1.0f / static_cast<float>(entries);
    }
    PUMICE_UNROLL
    for (int32_t i = 0; i < kChunk; ++i)
      reduce.value[i] *= scale;
    store_chunk<kReduce.type, kReduce.schedule.access>(a.gather.output, at, reduce.value,
                                                       reduce.of.count);
    if constexpr (kMost) store_sources(a.gather.source, at, base);
  }

  PUMICE_DEVICE void store_partial(int64_t partial, int64_t base) const {
    const int64_t at = partial * a.gather.channels + reduce.of.channel;
    PUMICE_UNROLL
    for (int32_t i = 0; i < kChunk; ++i) {
      if (i < reduce.of.count) a.gather.partial.value[at + i] = reduce.value[i];
    }
    if constexpr (kMost) store_sources(a.gather.partial.source, at, base);
  }
};

template <GatherPartsSpec kSpec> PUMICE_DEVICE void gather_parts(const GatherPartsArguments& a) {
  const EntryChannels<kSpec.reduce> channels(block_index_y(), a.gather.channels, a.gather.heads);
  if (channels.is_idle()) return;
  const int64_t item = global_thread_index() / kSpec.reduce.schedule.team;
  if (item < a.table.items) GatherParts<kSpec>(a, channels).run(run_of_item(a.table, item));
}

/// The partial sums of each row of several pieces, in the order of the parts.
template <GatherPartsSpec kSpec>
PUMICE_DEVICE void finish_shared_rows(const GatherPartsArguments& a) {
  constexpr bool kMost = kSpec.reduce.operation == EntryOperation::most;
  const int64_t channels = a.gather.channels;
  const int64_t items = a.table.shared_rows * channels;
  const int64_t step = int64_t{grid_size()} * block_size();
  PUMICE_ROLLED
  for (int64_t at = global_thread_index(); at < items; at += step) {
    const LongRow row = a.table.shared_row[at / channels];
    const int64_t channel = at % channels;
    float value = 0;
    int64_t source = -1;
    PUMICE_UNROLL_BY(4)
    for (int32_t part = row.first; part < row.first + row.parts; ++part) {
      const int64_t from = part * channels + channel;
      const float of_part = a.gather.partial.value[from];
      if constexpr (kMost) {
        const int64_t candidate = a.gather.partial.source[from];
        if (candidate < 0) continue;
        const auto is_before = [&] {
          return a.table.place == nullptr ? candidate < source
                                          : a.table.place[candidate] < a.table.place[source];
        };
        if (source >= 0 && !takes_place(of_part, value, is_before)) continue;
        value = of_part;
        source = candidate;
      } else {
        value += of_part;
      }
    }
    const int64_t to = int64_t{row.row} * channels + channel;
    if (kMost && source >= 0) value *= a.gather.sign;
    if (a.gather.averages) {
      const int64_t entries = a.table.row_begin[row.row + 1] - a.table.row_begin[row.row];
      if (entries > 0) value /= static_cast<float>(entries);
    }
    store_element(kSpec.reduce.type, a.gather.output, to, value);
    if constexpr (kMost) a.gather.source[to] = source;
  }
}

}   // namespace pumice
