// ScoreGradient on a device: what comes back through scores att · leaky(own + other), without the
// sums of the way there, [entries, channels], which are computed once more. A team takes a row, or
// a part of one, and each thread a chunk of its channels:
//
//   gradient of the row        att · Σ g[entry] · leaky'(own + other)
//   gradient of att            Σ over all rows of Σ g[entry] · leaky(own + other)
//
// leaky(z) is leaky'(z) · z, so one product more gives the second; sums of minus infinity, which
// take no part in a softmax, add nothing to it. A thread keeps it from row to row; each team leaves
// its share, which are added up in a fixed order afterwards.
#pragma once

#include <pumice/shared/entry_arguments.h>
#include <pumice/skeleton/entry_walk.h>
#include <pumice/thread/global_access.h>
#include <pumice/thread/leaky.h>

namespace pumice {

template <ScoreGradientSpec kSpec> struct ScoreGradient {
  static constexpr int32_t kChunk = entry_chunk(kSpec.type);
  static constexpr int32_t kTeam = kSpec.schedule.team;
  static constexpr int32_t kWays = kSpec.ways;
  static constexpr int32_t kThreads = kTeam * kWays;        // of an item
  static constexpr int32_t kAhead = kSpec.schedule.ahead;   // entries at a time
  static constexpr int32_t kWeights = kSpec.whole_heads ? 1 : kChunk;

  const ScoreArguments& a;
  int32_t channel;   // the first of the chunk
  int32_t count;     // of channels; 0 and less: none
  int32_t head;      // of whole heads
  float attention[kChunk];
  float share[kSpec.attention ? kChunk : 1];
  float own[kChunk];
  float sum[kChunk];

  PUMICE_DEVICE explicit ScoreGradient(const ScoreArguments& arguments) : a(arguments) {
    channel = (block_index_y() * kTeam + thread_index() % kTeam) * kChunk;
    const int32_t left = a.channels - channel;
    count = left < kChunk ? left : kChunk;
    head = kSpec.whole_heads && left > 0 ? channel / (a.channels / a.heads) : 0;
    fill(attention, 0.0f);
    fill(share, 0.0f);
    load(a.attention, 0, attention);
  }

  /// This thread's chunk of a row.
  PUMICE_DEVICE void load(const void* data, int64_t row, float (&value)[kChunk]) const {
    load_chunk<kSpec.type, kSpec.schedule.access, true>(data, row * a.channels + channel, value,
                                                        count);
  }

  PUMICE_DEVICE void load_weights(int64_t number, float (&weight)[kWeights]) const {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kWeights; ++i) {
      if (i >= count) continue;
      const int32_t of = kSpec.whole_heads ? head : (channel + i) / (a.channels / a.heads);
      weight[i] = load_element(kSpec.type, a.grad, number * a.heads + of);
    }
  }

  /// One entry. `entry`: of rows of entries.
  PUMICE_DEVICE void take(const float (&other)[kChunk], const float (&entry)[kChunk],
                          const float (&weight)[kWeights], int64_t number) {
    float of_entry[kChunk];
    PUMICE_UNROLL
    for (int32_t i = 0; i < kChunk; ++i) {
      if (i >= count) continue;
      float z = own[i] + other[i];
      if constexpr (kSpec.entries) z += entry[i];
      const float g = weight[kSpec.whole_heads ? 0 : i];
      const float slanted = z > 0 ? g : g * a.slope;
      sum[i] += slanted;
      if constexpr (kSpec.attention) share[i] += slanted * (is_minus_infinity(z) ? 0 : z);
      of_entry[i] = slanted * attention[i];
    }
    if constexpr (kSpec.entries && kSpec.attention)
      store_chunk<kSpec.type, kSpec.schedule.access>(a.grad_entry, number * a.channels + channel,
                                                     of_entry, count);
  }

  /// Every `kWays`-th entry from `place` on, of which `left` are there.
  PUMICE_DEVICE void take_batch(int64_t place, int32_t left) {
    float other[kAhead][kChunk];
    float entry[kSpec.entries ? kAhead : 1][kChunk];
    float weight[kAhead][kWeights];
    int64_t number[kAhead];
    PUMICE_UNROLL
    for (int32_t e = 0; e < kAhead; ++e) {
      if (e * kWays >= left) continue;   // not break: barriers of nested branches spill
      number[e] = number_of_entry(a.pattern, place + e * kWays);
      load(a.other, a.pattern.column[place + e * kWays], other[e]);
      if constexpr (kSpec.entries) load(a.entry, number[e], entry[e]);
      load_weights(number[e], weight[e]);
    }
    PUMICE_UNROLL
    for (int32_t e = 0; e < kAhead; ++e) {
      if (e * kWays >= left) continue;
      take(other[e], entry[kSpec.entries ? e : 0], weight[e], number[e]);
    }
  }

  PUMICE_DEVICE void take_range(const EntryRange& range, int32_t way) {
    fill(own, 0.0f);
    load(a.own, range.row, own);
    const auto entries = static_cast<int32_t>(range.end - range.begin);
    PUMICE_ROLLED
    for (int32_t at = way; at < entries; at += kAhead * kWays)
      take_batch(range.begin + at, entries - at);
  }

  /// What the ways have found, in all of them. With the whole warp.
  template <int32_t kCount> PUMICE_DEVICE static void meet(float (&value)[kCount]) {
    PUMICE_UNROLL
    for (int32_t mask = kTeam; mask < kThreads; mask *= 2) {
      PUMICE_UNROLL
      for (int32_t i = 0; i < kCount; ++i)
        value[i] += warp_shuffle_xor(value[i], mask);
    }
  }

  PUMICE_DEVICE void write(float* to, int64_t row, const float (&value)[kChunk]) const {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kChunk; ++i) {
      if (i < count) to[row * a.channels + channel + i] = value[i];
    }
  }

  PUMICE_DEVICE void store(const EntryRange& range) {
    if (count <= 0) return;
    if (range.part >= 0) return write(a.partial, range.part, sum);
    PUMICE_UNROLL
    for (int32_t i = 0; i < kChunk; ++i)
      sum[i] *= attention[i];
    store_chunk<kSpec.type, kSpec.schedule.access>(a.output, range.row * a.channels + channel, sum,
                                                   count);
  }
};

template <ScoreGradientSpec kSpec> PUMICE_DEVICE void score_gradient(const ScoreArguments& a) {
  using Gradient = ScoreGradient<kSpec>;
  const int64_t items = entry_items(a.pattern);
  const int64_t step = int64_t{grid_size()} * block_size() / Gradient::kThreads;
  const int64_t first = global_thread_index() / Gradient::kThreads;
  const int32_t way = thread_index() % Gradient::kThreads / Gradient::kTeam;
  Gradient gradient(a);
  PUMICE_ROLLED
  for (int64_t at = first; warp_any(at < items); at += step) {
    EntryRange range;
    if (at < items) range = range_of_item(a.pattern, at);
    const bool takes = at < items && !range.is_left_out;
    fill(gradient.sum, 0.0f);
    if (takes) gradient.take_range(range, way);
    Gradient::meet(gradient.sum);
    if (takes && way == 0) gradient.store(range);
  }
  if constexpr (kSpec.attention) {
    Gradient::meet(gradient.share);
    if (way == 0) gradient.write(a.share, first, gradient.share);
  }
}

/// The parts of each long row, in their order.
template <ScoreGradientSpec kSpec> PUMICE_DEVICE void finish_scores(const ScoreArguments& a) {
  const int64_t items = int64_t{a.pattern.long_rows.counts[1]} * a.channels;
  const int64_t step = int64_t{grid_size()} * block_size();
  PUMICE_ROLLED
  for (int64_t at = global_thread_index(); at < items; at += step) {
    const LongRow row = a.pattern.long_rows.row[at / a.channels];
    const int64_t channel = at % a.channels;
    float sum = 0;
    PUMICE_UNROLL_BY(4)
    for (int32_t part = row.first; part < row.first + row.parts; ++part)
      sum += a.partial[int64_t{part} * a.channels + channel];
    store_element(kSpec.type, a.output, row.row * int64_t{a.channels} + channel,
                  sum * load_element(kSpec.type, a.attention, channel));
  }
}

}   // namespace pumice
