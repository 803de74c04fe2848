// Depthwise convolution on the tiles of other convolutions: a thread has a few channels of one row
// and goes through the tile's entries.
//
//    entry e0: in_row[p] ─► x chunk · w[k0] ─┐
//    entry e1: in_row[p] ─► x chunk · w[k1] ─┼─► fp32 sums of 4 channels ─► epilogue ─► row
//    …                                       ┘
#pragma once

#include <pumice/shared/depthwise_arguments.h>
#include <pumice/skeleton/apply_epilogue.h>
#include <pumice/skeleton/poison.h>

namespace pumice {

/// kCount channels from `channel` on of position `position` of a tile.
template <ElementType kType, int32_t kCount>
PUMICE_DEVICE void depthwise_sums(const DepthwiseArguments& arguments, const TileRun& run,
                                  int32_t position, int32_t channel, float (&sum)[kCount]) {
  constexpr int32_t kAlign = kCount * element_bytes(kType);
  const TileMapRef& map = arguments.map;
  const auto* const entries = reinterpret_cast<const uint32_t*>(map.entry);
  PUMICE_ROLLED
  for (int32_t e = run.entry_begin; e < run.entry_end; ++e) {
    const uint32_t entry = entries[e];   // offset below, blocks above
    if ((entry >> (16 + position / kBlockRows) & 1) == 0) continue;
    const int32_t row = map.in_row[int64_t{e} * map.tile_rows + position];
    if (row < 0) continue;
    const int32_t offset = static_cast<int32_t>(entry & 0xffff);
    const int32_t slice = arguments.mirror ? map.offsets - 1 - offset : offset;
    float x[kCount], w[kCount];
    load_chunk<kType, kAlign, true>(arguments.input, int64_t{row} * arguments.channels + channel, x,
                                    kCount);
    load_chunk<kType, kAlign, true>(arguments.weight, int64_t{slice} * arguments.channels + channel,
                                    w, kCount);
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i)
      sum[i] += x[i] * w[i];
  }
}

/// kCount sums as a share of a partial result.
template <Write kWrite, int32_t kCount>
PUMICE_DEVICE void write_sums(float* partial, int64_t element, const float (&sum)[kCount]) {
  if constexpr (kWrite == Write::slots) {
    store_chunk<ElementType::f32, kCount * 4>(partial, element, sum, kCount);
  } else if constexpr (kCount == 4) {
    add_four(partial + element, sum);
  } else {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i)
      atomic_add(partial + element + i, sum[i]);
  }
}

template <ElementType kType, Write kWrite, int32_t kCount>
PUMICE_DEVICE void depthwise_tile(const DepthwiseArguments& arguments, const TileRun& run) {
  constexpr int32_t kAlign = kCount * element_bytes(kType);
  const EpilogueArguments& epilogue = arguments.epilogue;
  const float below = negative_slope(epilogue.activation, epilogue.slope);
  const int32_t chunks = arguments.channels / kCount;
  PUMICE_ROLLED
  for (int32_t item = thread_index(); item < arguments.map.tile_rows * chunks;
       item += block_size()) {
    const int32_t position = item / chunks, channel = item % chunks * kCount;
    const int64_t row =
        arguments.map.out_row[int64_t{run.tile} * arguments.map.tile_rows + position];
    if (row < 0) continue;
    float sum[kCount];
    fill(sum, 0.0f);
    depthwise_sums<kType>(arguments, run, position, channel, sum);
    const int64_t element = row * arguments.channels + channel;
    if constexpr (kWrite != Write::store) {
      write_sums<kWrite>(static_cast<float*>(arguments.output), element, sum);
      continue;
    }
    ChannelEpilogue<kCount * 4, kCount> channels;
    channels.load(epilogue, channel, kCount);
    float residual[kCount];
    load_or_fill<kType, kAlign>(residual, epilogue.residual, element, kCount, 0.0f);
    apply_epilogue<ActivationSet::all>(sum, channels, residual, epilogue.activation, below);
    store_chunk<kType, kAlign>(arguments.output, element, sum, kCount);
  }
}

template <ElementType kType, Write kWrite = Write::store>
PUMICE_DEVICE void depthwise(const DepthwiseArguments& arguments) {
  const TileMapRef& map = arguments.map;
  if (map.tiles.poisoned() || map.in_rows.poisoned() || map.out_rows.poisoned()) {
    // A partial result is left alone: whoever finishes it sees the same counts.
    if (kWrite == Write::store)
      fill_with_nan<kType>(arguments.output, map.out_rows.capacity * arguments.channels);
    return;
  }
  if (block_index() >= map.tiles.rows()) return;
  const TileRun run = map.tile_order[block_index()];
  if (arguments.channels % 4 == 0) {
    depthwise_tile<kType, kWrite, 4>(arguments, run);
  } else {
    depthwise_tile<kType, kWrite, 1>(arguments, run);
  }
}

}   // namespace pumice
