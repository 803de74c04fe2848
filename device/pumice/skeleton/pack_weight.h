// Packs weights for the tile kernels: one thread for every 16 bytes of a block. The layout is data,
// so one kernel serves all specifications.
#pragma once

#include <pumice/platform.h>
#include <pumice/shared/pack_weight.h>
#include <pumice/thread/global_access.h>

namespace pumice {

/// Where a chunk of packed weights comes from and goes to.
struct WeightChunk {
  int32_t group = 0;
  int32_t offset = 0;
  int32_t channel = 0;   // first input channel
  int32_t column = 0;    // first output channel, in the group
  int64_t byte = 0;      // in the packed weights
};

/// Chunk `index` of all. Output channels run fastest, as they do in the native layout.
PUMICE_DEVICE WeightChunk weight_chunk(const WeightLayout& layout, int64_t index) {
  const int32_t chunks = block_bytes(layout) / kChunkBytes;
  const int32_t chunk_channels = kChunkBytes / element_bytes(layout.operand);
  const int64_t block = index / chunks;
  const int32_t chunk = static_cast<int32_t>(index % chunks);
  const int32_t depth_tiles = divide_up(layout.in_channels, layout.depth);
  const int32_t column_tile_count = divide_up(layout.out_channels, layout.columns);

  const int32_t first_channel = static_cast<int32_t>(block % depth_tiles) * layout.depth;
  const int64_t slice = block / depth_tiles;
  const int64_t tile = slice / layout.offsets;
  WeightChunk result;
  result.offset = static_cast<int32_t>(slice % layout.offsets);
  result.group = static_cast<int32_t>(tile / column_tile_count);
  const int32_t first_column = static_cast<int32_t>(tile % column_tile_count) * layout.columns;

  int32_t in_block = chunk * kChunkBytes;
  if (layout.swizzle == 0) {
    result.channel = first_channel + chunk / (layout.columns / chunk_channels);
    result.column = first_column + chunk % (layout.columns / chunk_channels) * chunk_channels;
  } else {
    const int32_t column = chunk % layout.columns;
    const int32_t along = chunk / layout.columns;   // chunk of the row, over all sub-tiles
    const int32_t sub_chunks = layout.swizzle / kChunkBytes;
    result.channel = first_channel + along * chunk_channels;
    result.column = first_column + column;
    in_block = along / sub_chunks * layout.columns * layout.swizzle +
               swizzled_offset(layout.swizzle, column, along % sub_chunks);
  }
  result.byte = block * block_bytes(layout) + in_block;
  return result;
}

/// One weight as fp32, scaled; zero past the last channel.
PUMICE_DEVICE float native_weight(const PackWeightArguments& arguments, const WeightChunk& chunk,
                                  int32_t channel, int32_t column) {
  const WeightLayout& layout = arguments.layout;
  if (channel >= layout.in_channels || column >= layout.out_channels) return 0.0f;
  const int64_t offset = arguments.mirror ? layout.offsets - 1 - chunk.offset : chunk.offset;
  const int64_t element =
      arguments.transpose
          ? (offset * layout.out_channels + column) * layout.groups * layout.in_channels +
                chunk.group * layout.in_channels + channel
          : (offset * layout.in_channels + channel) * layout.groups * layout.out_channels +
                chunk.group * layout.out_channels + column;
  const float scale = arguments.scale == nullptr
                          ? 1.0f
                          : arguments.scale[chunk.group * layout.out_channels + column];
  const auto* half = static_cast<const uint16_t*>(arguments.weight);
  switch (arguments.source) {
    case ElementType::f16: return scale * widen_half<ElementType::f16>(half[element]);
    case ElementType::bf16: return scale * widen_half<ElementType::bf16>(half[element]);
    default: return scale * static_cast<const float*>(arguments.weight)[element];
  }
}

/// Two neighbours of a chunk as they are stored, or one of a 32-bit type.
PUMICE_DEVICE uint32_t packed_word(ElementType operand, float first, float second) {
  switch (operand) {
    case ElementType::f16: return pack_half2<ElementType::f16>(first, second);
    case ElementType::bf16: return pack_half2<ElementType::bf16>(first, second);
    case ElementType::tf32: return round_to_tf32(float_to_bits(first));
    default: return float_to_bits(first);
  }
}

/// The blocks of a row of the grid walk over all chunks of one weight.
PUMICE_DEVICE void pack_chunks(const PackWeightArguments& arguments) {
  const WeightLayout& layout = arguments.layout;
  const int64_t chunks = packed_bytes(layout) / kChunkBytes;
  const int32_t values = 4 / element_bytes(layout.operand);   // of a word
  const bool along_columns = layout.swizzle == 0;
  const int64_t step = int64_t{grid_size()} * block_size();
  for (int64_t index = global_thread_index(); index < chunks; index += step) {
    const WeightChunk chunk = weight_chunk(layout, index);
    const auto value = [&](int32_t i) {
      return native_weight(arguments, chunk, chunk.channel + (along_columns ? 0 : i),
                           chunk.column + (along_columns ? i : 0));
    };
    Words<4> words;
    for (int32_t i = 0; i < 4; ++i) {
      words.word[i] =
          packed_word(layout.operand, value(i * values), values == 2 ? value(i * 2 + 1) : 0.0f);
    }
    *reinterpret_cast<Words<4>*>(static_cast<char*>(arguments.packed) + chunk.byte) = words;
  }
}

PUMICE_KERNEL void pack_weight(PUMICE_ARGUMENT(PackWeightArguments) arguments) {
  wait_for_previous();
  pack_chunks(arguments);
}

/// Many weights at once, each by a row of the grid.
PUMICE_KERNEL void pack_weights(PUMICE_ARGUMENT(PackWeightsArguments) arguments) {
  wait_for_previous();
  pack_chunks(arguments.weight[block_index_y()]);
}

}   // namespace pumice
