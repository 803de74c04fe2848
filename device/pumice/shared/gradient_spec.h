// What a weight gradient kernel is specialised on, and what a launch passes.
//
//     dW[k] = Σ over the pairs of offset k:  xᵀ · dy        for all offsets in one launch
//
//      x: tile_in channels of an input row        pairs of all offsets, cut into chunks of
//    ┌─┬─┬─┬─┐                                    `tile_pairs` that never cross offsets:
//    │ │ │ │ │ pairs →                             k = 0    │ k = 1 │ k = 2         │ …
//    └─┴─┴─┴─┘                                    │c0│c1│c2 │c3     │c4│c5│c6│c7    │
//    ┌─┬─┬─┬─┐                                    └ block 0 ─┴ block 1 ──┴ block 2 ─ …
//    │ │ │ │ │ dy: tile_out channels of an        Every thread block takes an equal share of the
//    └─┴─┴─┴─┘     output row's gradient          chunks, and flushes its sums where offsets end.
#pragma once

#include <pumice/shared/pair_list_ref.h>
#include <pumice/shared/tile_limits.h>

namespace pumice {

struct GradientSpec {
  Instruction instruction = Instruction::mma_sync;
  ElementType operand = ElementType::f16;
  Write write = Write::add;   // add: to zeroed fp32; slots: each flush to a place of its own
  int32_t in_channels = 0;    // of a group
  int32_t out_channels = 0;
  int32_t groups = 1;
  int32_t tile_in = 64;
  int32_t tile_out = 64;
  int32_t tile_pairs = 32;
  int32_t stages = 4;
  int32_t in_warps = 2;   // warps that multiply, along the input channels; wgmma: 4 a warpgroup
  int32_t out_warps = 2;
  int32_t blocks_per_sm = 1;

  constexpr bool operator==(const GradientSpec&) const = default;
};

struct GradientArguments {
  PairListRef pairs;
  const void* input = nullptr;   // [in_rows, groups · in_channels]
  const void* grad = nullptr;    // [out_rows, groups · out_channels]
  /// Write::add: [offsets, result_channels, groups · out_channels], of which rows [first_channel,
  /// first_channel + in_channels) of each offset are added to: the inputs of a convolution with two
  /// sources are taken one after the other. Write::slots: [gradient_slots, in_channels, groups ·
  /// out_channels], for sum_slots.
  float* result = nullptr;
  int32_t result_channels = 0;
  int32_t first_channel = 0;
};

struct SumSlotsArguments {
  PairListRef pairs;
  const float* slots = nullptr;
  void* result = nullptr;   // [offsets, result_channels, columns]
  int32_t in_channels = 0;
  int32_t columns = 0;   // groups · out_channels
  int32_t result_channels = 0;
  int32_t first_channel = 0;
  int32_t tile_pairs = 0;     // of the kernel that filled the slots
  int32_t share_blocks = 0;   // its blocks along x
};

/// A flush of offset k by block b goes to slot b + k: along the list of chunks each flush has a
/// later block or a later offset than the one before, so no two meet.
PUMICE_SHARED constexpr int64_t gradient_slots(int64_t offsets, int64_t share_blocks) {
  return offsets + share_blocks;
}

/// Chunks of block `block` of `blocks`: [share(…, block), share(…, block + 1)).
PUMICE_SHARED constexpr int64_t chunk_share(int64_t chunks, int64_t block, int64_t blocks) {
  return chunks * block / blocks;
}
/// Which block has chunk `chunk` in its share.
PUMICE_SHARED constexpr int64_t block_of_chunk(int64_t chunks, int64_t chunk, int64_t blocks) {
  return ((chunk + 1) * blocks - 1) / chunks;
}

PUMICE_SHARED constexpr int32_t multiplying_warps(const GradientSpec& spec) {
  return spec.in_warps * spec.out_warps;
}
PUMICE_SHARED constexpr int32_t threads(const GradientSpec& spec) {
  return multiplying_warps(spec) * kWarpLanes +
         (spec.instruction == Instruction::wgmma ? kWarpgroupThreads : 0);
}
PUMICE_SHARED constexpr int32_t in_tiles(const GradientSpec& spec) {
  return divide_up(spec.in_channels, spec.tile_in);
}
PUMICE_SHARED constexpr int32_t out_tiles(const GradientSpec& spec) {
  return divide_up(spec.out_channels, spec.tile_out);
}
/// Blocks along y: tiles of a dW, and groups.
PUMICE_SHARED constexpr int32_t gradient_tiles(const GradientSpec& spec) {
  return spec.groups * in_tiles(spec) * out_tiles(spec);
}

/// Bytes of a swizzled row of `tile` channels; 0 for 32-bit types, whose rows are padded instead:
/// there is no transposing load for them.
PUMICE_SHARED constexpr int32_t gradient_swizzle(const GradientSpec& spec, int32_t tile) {
  if (element_bytes(spec.operand) == 4) return 0;
  if (spec.instruction == Instruction::wgmma) return 128;
  return tile % 64 == 0 ? 128 : tile % 32 == 0 ? 64 : 32;
}
/// Channels that a row has in shared memory: whole sub-tiles.
PUMICE_SHARED constexpr int32_t staged_channels(const GradientSpec& spec, int32_t tile) {
  return spec.instruction == Instruction::wgmma ? divide_up(tile, 64) * 64 : tile;
}
/// With this pitch lanes that read four rows of eight channels touch different banks.
PUMICE_SHARED constexpr int32_t padded_pitch(int32_t tile) {
  return tile * 4 + 32;
}

PUMICE_SHARED constexpr int32_t operand_bytes(const GradientSpec& spec, int32_t tile) {
  return spec.tile_pairs *
         (element_bytes(spec.operand) == 4 ? padded_pitch(tile) : staged_channels(spec, tile) * 2);
}
PUMICE_SHARED constexpr int32_t stage_bytes(const GradientSpec& spec) {
  return operand_bytes(spec, spec.tile_in) + operand_bytes(spec, spec.tile_out);
}
/// Where each offset's pairs and chunks begin: 8 + 4 bytes an offset and one more.
PUMICE_SHARED constexpr int32_t offset_table_bytes(int32_t offsets) {
  return divide_up((offsets + 1) * 12, 16) * 16;
}
/// Dynamic shared memory of a launch: stages, barriers, the table of offsets.
PUMICE_SHARED constexpr int32_t shared_bytes(const GradientSpec& spec, int32_t offsets) {
  const int32_t barriers = spec.instruction == Instruction::wgmma ? 16 * spec.stages : 0;
  return spec.stages * stage_bytes(spec) + barriers + offset_table_bytes(offsets);
}

/// Bytes of one copy out of the rows of an operand.
PUMICE_SHARED constexpr int32_t gradient_copy_bytes(const GradientSpec& spec, int32_t channels) {
  return widest_copy(int64_t{channels} * element_bytes(spec.operand));
}

/// Null, or why no kernel can be built from this.
PUMICE_SHARED constexpr const char* why_invalid(const GradientSpec& spec) {
  if (spec.in_channels < 1 || spec.out_channels < 1 || spec.groups < 1)
    return "channels and groups are at least 1";
  if (spec.write == Write::store) return "a weight gradient is added up or put into slots";
  if ((spec.instruction == Instruction::fma) != (spec.operand == ElementType::f32))
    return "fp32 operands and fp32 multiply-adds go together";
  if (spec.stages < 2 || spec.stages > 16) return "stages are 2 to 16";
  if (threads(spec) > 1024 || multiplying_warps(spec) < 1) return "a block has 1 to 1024 threads";
  if (spec.tile_pairs % 32 != 0) return "chunks are multiples of 32 pairs";
  if (spec.instruction == Instruction::wgmma) {
    if (element_bytes(spec.operand) != 2) return "wgmma transposes 16-bit operands only";
    if (spec.in_warps % 4 != 0 || spec.out_warps != 1 || spec.tile_in != 16 * spec.in_warps)
      return "a warpgroup multiplies 64 input channels";
    if (spec.tile_out % 8 != 0 || spec.tile_out > 256) return "tile_out is 8 to 256";
    if (gradient_copy_bytes(spec, spec.in_channels) != 16 ||
        gradient_copy_bytes(spec, spec.out_channels) != 16)
      return "wgmma gathers rows of whole 16-byte chunks";
    if (spec.tile_out / 2 + 40 > multiply_registers(spec) ||
        spec.tile_out / 2 + 26 > start_registers(spec))
      return "the sums do not fit into registers";
  } else {
    const int32_t rows = spec.tile_in / spec.in_warps, columns = spec.tile_out / spec.out_warps;
    const int32_t column_step = spec.instruction == Instruction::fma ? 32 : 16;
    if (spec.tile_in % spec.in_warps != 0 || rows % 16 != 0)
      return "a warp has a multiple of 16 input channels";
    if (spec.tile_out % spec.out_warps != 0 || columns % column_step != 0)
      return "a warp has a multiple of 16 output channels, of 32 with multiply-adds";
    if (rows * columns / kWarpLanes > 128) return "a thread holds up to 128 sums";
    if (32 % multiplying_warps(spec) != 0 && multiplying_warps(spec) % 32 != 0)
      return "the warps share the pairs of a chunk evenly";
  }
  if (spec.blocks_per_sm < 1 ||
      spec.blocks_per_sm * (shared_bytes(spec, 27) + kReservedShared) > 228 * 1024)
    return "the blocks of a multiprocessor have 228 KB of shared memory";
  return nullptr;
}
PUMICE_SHARED constexpr bool is_valid(const GradientSpec& spec) {
  return why_invalid(spec) == nullptr;
}

PUMICE_SHARED constexpr uint32_t architectures(const GradientSpec& spec) {
  return architectures_with(spec.instruction, spec.blocks_per_sm, shared_bytes(spec, 27));
}

PUMICE_SHARED constexpr uint64_t fingerprint(const GradientSpec& spec) {
  const int32_t fields[] = {static_cast<int32_t>(spec.instruction),
                            static_cast<int32_t>(spec.operand),
                            static_cast<int32_t>(spec.write),
                            spec.in_channels,
                            spec.out_channels,
                            spec.groups,
                            spec.tile_in,
                            spec.tile_out,
                            spec.tile_pairs,
                            spec.stages,
                            spec.in_warps,
                            spec.out_warps,
                            spec.blocks_per_sm};
  uint64_t hash = 14695981039346656037u;
  for (const int32_t field : fields)
    hash = (hash ^ static_cast<uint32_t>(field)) * 1099511628211u;
  return hash;
}

}   // namespace pumice
