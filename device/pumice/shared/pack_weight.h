// The order in which kernels read weights: for each group, tile of output channels, kernel offset
// and chunk of input channels one block, which is the image of a stage in shared memory and is
// copied there byte by byte.
//
//   native  [K, C_in / groups, C_out]           packed  [group][column tile][offset][chunk] blocks
//                                               a block: sub-tiles of `columns` rows, a row the
//                                               input channels of one output channel, swizzled
//                                               (fp32 multiply-adds: `depth` rows of columns)
//
// Channels past the last one are zeros, so any number of channels runs in whole tiles.
#pragma once

#include <pumice/shared/swizzle.h>
#include <pumice/shared/tile_spec.h>

namespace pumice {

struct WeightLayout {
  ElementType operand = ElementType::f16;
  int32_t offsets = 1;
  int32_t groups = 1;
  int32_t in_channels = 0;    // of a group
  int32_t out_channels = 0;   // of a group
  int32_t columns = 0;        // of a block
  int32_t depth = 0;
  int32_t swizzle =
      0;   // bytes of a sub-tile's row; 0: rows of `columns`, one for each input channel
};

PUMICE_SHARED constexpr WeightLayout weight_layout(const TileSpec& spec, int32_t offsets) {
  return {.operand = spec.operand,
          .offsets = offsets,
          .groups = spec.groups,
          .in_channels = spec.in_channels,
          .out_channels = spec.out_channels,
          .columns = spec.tile_columns,
          .depth = spec.tile_depth,
          .swizzle = spec.instruction == Instruction::fma ? 0 : swizzle_bytes(spec)};
}

PUMICE_SHARED constexpr WeightLayout shortcut_weight_layout(const TileSpec& spec) {
  WeightLayout layout = weight_layout(spec, 1);
  layout.in_channels = spec.shortcut_channels;
  return layout;
}

PUMICE_SHARED constexpr int32_t block_bytes(const WeightLayout& layout) {
  return layout.columns * layout.depth * element_bytes(layout.operand);
}

PUMICE_SHARED constexpr int64_t packed_blocks(const WeightLayout& layout) {
  return int64_t{layout.groups} * divide_up(layout.out_channels, layout.columns) * layout.offsets *
         divide_up(layout.in_channels, layout.depth);
}

PUMICE_SHARED constexpr int64_t packed_bytes(const WeightLayout& layout) {
  return packed_blocks(layout) * block_bytes(layout);
}

struct PackWeightArguments {
  WeightLayout layout;
  const void* weight = nullptr;   // of type `source`
  void* packed = nullptr;
  const float* scale = nullptr;   // [groups · out_channels], multiplied in before rounding
  ElementType source = ElementType::f16;   // f32, or the operand's own type
  bool transpose = false;   // Wᵀ of a weight [K, out_channels, groups · in_channels]: for the input
                            // gradient, whose layout has the channels exchanged
  bool mirror = false;   // offset k reads slice K − 1 − k: a symmetric map run backwards
};

/// That one launch takes; its arguments are as long as such a launch's may be.
constexpr int32_t kMostPackedWeights = 32;

struct PackWeightsArguments {
  PackWeightArguments weight[kMostPackedWeights];
};

}   // namespace pumice
