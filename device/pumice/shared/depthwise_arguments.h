// What launches of the depthwise kernels pass: every channel meets itself alone, so there is no
// product of matrices, and memory is the bound.
#pragma once

#include <pumice/shared/gradient_spec.h>
#include <pumice/shared/tile_arguments.h>

namespace pumice {

/// Any tile map, one thread block a tile.
struct DepthwiseArguments {
  TileMapRef map;
  const void* input = nullptr;    // [in_rows, channels]
  const void* weight = nullptr;   // [offsets, channels], of the same type
  void* output = nullptr;   // [out_rows, channels], of the same type; of a partial result: f32
  int32_t channels = 0;
  bool mirror = false;   // offset k reads slice K − 1 − k: a symmetric map run backwards
  EpilogueArguments epilogue{};
};

/// Blocks share the pairs as those of a weight gradient do; slots are summed by sum_slots with one
/// input channel.
struct DepthwiseGradientArguments {
  PairListRef pairs;
  const void* input = nullptr;   // [in_rows, channels]
  const void* grad = nullptr;    // [out_rows, channels]
  float* slots = nullptr;        // [gradient_slots, channels]
  int32_t channels = 0;
};

inline constexpr int32_t kDepthwiseThreads = 256;
/// Pairs of a chunk: what sum_slots is told as tile_pairs.
inline constexpr int32_t kDepthwisePairs = 256;

/// Channels that a thread has at a time.
PUMICE_SHARED constexpr int32_t depthwise_count(int32_t channels) {
  return channels % 4 == 0 ? 4 : 1;
}
/// Blocks along y of the weight gradient.
PUMICE_SHARED constexpr int32_t depthwise_gradient_tiles(int32_t channels) {
  return divide_up(channels, kDepthwiseThreads * depthwise_count(channels));
}
/// Its dynamic shared memory: sums of every thread, and the table of offsets.
PUMICE_SHARED constexpr int32_t depthwise_gradient_shared_bytes(int32_t offsets) {
  return kDepthwiseThreads * 4 * 4 + offset_table_bytes(offsets);
}

}   // namespace pumice
