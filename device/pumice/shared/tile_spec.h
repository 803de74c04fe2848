// What a TileMMA kernel is specialised on: a plain value that the host prints as C++ and the device
// takes as a template argument. Everything that differs from one kernel to the next stands here;
// everything that differs from one call to the next stands in tile_arguments.h.
//
//                    in_channels                      tile_columns
//                 ┌──────────────┐                ┌──────────────────┐
//      tile_rows  │ gathered rows│  tile_depth ×  │ weights of an    │   → tile_rows × tile_columns
//      (64·m)     │  of an entry │   a stage      │ offset           │     sums in fp32 → epilogue
//                 └──────────────┘                └──────────────────┘
#pragma once

#include <pumice/shared/types.h>

namespace pumice {

enum class Instruction : int32_t {
  fma,        // fp32 multiply-adds
  mma_sync,   // tensor cores through registers, sm_80 and later
  wgmma,      // tensor cores from shared memory, sm_90a only
};

/// What is multiplied, or stored. Sums are always fp32.
enum class ElementType : int32_t { f32, tf32, f16, bf16 };

enum class Gather : int32_t {
  map,        // rows named by a tile map
  identity,   // position = row: 1×1 convolutions and linear layers
};

enum class Write : int32_t {
  store,   // epilogue, then the output
  add,     // added to an fp32 partial result, in no particular order
  slots,   // each split of the offsets stores fp32 sums of its own
};

/// Which activations a kernel knows; which one of them runs is data.
enum class ActivationSet : int32_t {
  sloped,   // none, relu, leaky_relu: a comparison and a multiplication
  all,
};

struct TileSpec {
  Instruction instruction = Instruction::mma_sync;
  ElementType operand = ElementType::f16;
  ElementType output = ElementType::f16;
  Gather gather = Gather::map;
  Write write = Write::store;

  // Channels of one group. With two sources, channels [0, first_channels) come from the first one
  // and the rest from the second; with one, first_channels == in_channels.
  int32_t in_channels = 0;
  int32_t first_channels = 0;
  int32_t out_channels = 0;
  int32_t groups = 1;
  // A further input, met row by row through weights of its own: the 1×1 shortcut of a residual
  // block. 0: none.
  int32_t shortcut_channels = 0;
  int32_t shortcut_first_channels = 0;

  int32_t tile_rows = 128;
  int32_t tile_columns = 64;
  int32_t tile_depth = 32;   // input channels of a stage
  int32_t stages = 4;
  int32_t row_warps = 4;   // warps that multiply, along the rows; wgmma: 4 for each warpgroup
  int32_t column_warps = 1;
  int32_t blocks_per_sm = 1;   // thread blocks that registers are shared out for
  int32_t resident_offsets =
      0;   // with few channels the weights of so many offsets, all there are,
           // stay in shared memory; then `stages` counts entries in flight

  bool affine = true;     // scale and shift are compiled in
  bool residual = true;   // a residual is compiled in
  ActivationSet activations = ActivationSet::sloped;

  constexpr bool operator==(const TileSpec&) const = default;
};

/// Bytes of an element in memory. tf32 is stored as fp32.
PUMICE_SHARED constexpr int32_t element_bytes(ElementType element) {
  return element == ElementType::f32 || element == ElementType::tf32 ? 4 : 2;
}

PUMICE_SHARED constexpr int32_t divide_up(int32_t value, int32_t divisor) {
  return (value + divisor - 1) / divisor;
}

/// What a kernel writes: rows of the output, or fp32 sums.
PUMICE_SHARED constexpr ElementType written_type(const TileSpec& spec) {
  if (spec.write != Write::store) return ElementType::f32;
  return spec.output;
}

// ---- Memory: what a stage holds and how a row lies in it

inline constexpr int32_t kChunkBytes = 16;   // what one lane copies at once
inline constexpr int32_t kWarpLanes = 32;
inline constexpr int32_t kWarpgroupThreads = 128;

/// Bytes of a row in a stage.
PUMICE_SHARED constexpr int32_t depth_bytes(const TileSpec& spec) {
  return spec.tile_depth * element_bytes(spec.operand);
}

/// A stage is cut into sub-tiles whose rows have the width of a swizzle pattern: 128, 64 or 32
/// bytes, the widest that divides the depth.
PUMICE_SHARED constexpr int32_t swizzle_bytes(const TileSpec& spec) {
  return depth_bytes(spec) % 128 == 0 ? 128 : depth_bytes(spec) % 64 == 0 ? 64 : 32;
}

PUMICE_SHARED constexpr int32_t sub_tiles(const TileSpec& spec) {
  return depth_bytes(spec) / swizzle_bytes(spec);
}

/// Row pitch of the gathered rows where fp32 multiply-adds read them: one chunk more than the row,
/// so that rows of neighbouring lanes lie in different banks.
PUMICE_SHARED constexpr int32_t padded_row_bytes(const TileSpec& spec) {
  return depth_bytes(spec) + kChunkBytes;
}

PUMICE_SHARED constexpr int32_t input_stage_bytes(const TileSpec& spec) {
  const bool padded = spec.instruction == Instruction::fma;
  return spec.tile_rows * (padded ? padded_row_bytes(spec) : depth_bytes(spec));
}

/// Also the bytes of one block of the packed weights, which is copied as it is.
PUMICE_SHARED constexpr int32_t weight_stage_bytes(const TileSpec& spec) {
  return spec.tile_columns * depth_bytes(spec);
}

PUMICE_SHARED constexpr int32_t stage_bytes(const TileSpec& spec) {
  return input_stage_bytes(spec) + weight_stage_bytes(spec);
}

// ---- Packed weights (pack_weight.h): [group][column tile][offset][chunk], each a block as above

PUMICE_SHARED constexpr int32_t depth_chunks(const TileSpec& spec) {
  return divide_up(spec.in_channels, spec.tile_depth);
}

PUMICE_SHARED constexpr int32_t shortcut_chunks(const TileSpec& spec) {
  return divide_up(spec.shortcut_channels, spec.tile_depth);
}

PUMICE_SHARED constexpr int32_t column_tiles(const TileSpec& spec) {
  return divide_up(spec.out_channels, spec.tile_columns);
}

// ---- Rows whose pitch is not a multiple of a chunk are copied in narrower pieces

/// The widest power of two up to 16 that divides `bytes`.
PUMICE_SHARED constexpr int32_t widest_copy(int64_t bytes) {
  return bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : 2;
}

/// Bytes of one copy out of the inputs' rows: every row and both sources start at a multiple of it.
PUMICE_SHARED constexpr int32_t input_copy_bytes(const TileSpec& spec) {
  const int32_t bytes = element_bytes(spec.operand);
  const int64_t together = int64_t{spec.first_channels} | spec.in_channels |
                           spec.shortcut_channels | spec.shortcut_first_channels;
  return widest_copy(together * bytes);
}

/// Bytes of one access to a row of the output or of the residual.
PUMICE_SHARED constexpr int32_t output_copy_bytes(const TileSpec& spec) {
  return widest_copy(int64_t{spec.out_channels} * element_bytes(spec.output));
}

// ---- Threads and shared memory

PUMICE_SHARED constexpr int32_t multiplying_warps(const TileSpec& spec) {
  return spec.row_warps * spec.column_warps;
}

/// wgmma has one warpgroup more, which gathers.
PUMICE_SHARED constexpr int32_t threads(const TileSpec& spec) {
  return multiplying_warps(spec) * kWarpLanes +
         (spec.instruction == Instruction::wgmma ? kWarpgroupThreads : 0);
}

// ---- The epilogue's staging memory, which reuses that of the stages. A warp has its sums there as
// groups of 16 rows, cut into pieces of up to 64 columns.

inline constexpr int32_t kGroupRows = 16;
inline constexpr int32_t kPieceColumns = 64;

/// Rows and columns of one multiplying warp.
PUMICE_SHARED constexpr int32_t warp_rows(const TileSpec& spec) {
  return spec.tile_rows / spec.row_warps;
}
PUMICE_SHARED constexpr int32_t warp_columns(const TileSpec& spec) {
  return spec.tile_columns / spec.column_warps;
}

/// 64-row blocks that are multiplied together or not at all, so that they are gathered together
/// too: those of a warp. A warpgroup (wgmma) chooses between its one or two blocks.
PUMICE_SHARED constexpr int32_t blocks_together(const TileSpec& spec) {
  const int32_t rows = warp_rows(spec) * (spec.instruction == Instruction::wgmma ? 4 : 1);
  const int32_t blocks = rows > 64 ? rows / 64 : 1;
  return spec.instruction == Instruction::wgmma && blocks == 2 ? 1 : blocks;
}

PUMICE_SHARED constexpr int32_t piece_columns(const TileSpec& spec) {
  const int32_t columns = divide_up(warp_columns(spec), 16) * 16;
  return columns < kPieceColumns ? columns : kPieceColumns;
}

/// Columns c with c mod 8 < 4 lie in the first half of a staged row, the others from here on, four
/// banks further. With the pitch below a warp writes its accumulators, and reads chunks of eight
/// columns, without bank conflicts.
PUMICE_SHARED constexpr int32_t staging_half(const TileSpec& spec) {
  return piece_columns(spec) / 2 + 4;
}
/// Floats of a staged row.
PUMICE_SHARED constexpr int32_t staging_pitch(const TileSpec& spec) {
  return piece_columns(spec) + 8;
}
PUMICE_SHARED constexpr int32_t staged_pieces(const TileSpec& spec) {
  return divide_up(warp_columns(spec), piece_columns(spec));
}

/// Bytes of one warp: the output row of each of its rows, then groups of pieces.
PUMICE_SHARED constexpr int32_t warp_staging_bytes(const TileSpec& spec) {
  const int32_t groups = warp_rows(spec) / kGroupRows;
  const int32_t piece = kGroupRows * staging_pitch(spec) * 4;
  return divide_up(warp_rows(spec) * 4, kChunkBytes) * kChunkBytes +
         groups * staged_pieces(spec) * piece;
}

PUMICE_SHARED constexpr int32_t staging_bytes(const TileSpec& spec) {
  return multiplying_warps(spec) * warp_staging_bytes(spec);
}

/// Weights that stay in shared memory.
PUMICE_SHARED constexpr int32_t resident_bytes(const TileSpec& spec) {
  return spec.resident_offsets * weight_stage_bytes(spec);
}

/// Dynamic shared memory of a launch.
PUMICE_SHARED constexpr int32_t shared_bytes(const TileSpec& spec) {
  if (spec.resident_offsets > 0) return staging_bytes(spec) + resident_bytes(spec);
  const int32_t stages = spec.stages * stage_bytes(spec);
  const int32_t staging = staging_bytes(spec);
  const int32_t barriers = spec.instruction == Instruction::wgmma ? 16 * spec.stages : 0;
  return (stages > staging ? stages : staging) + barriers;
}

/// Thread blocks along x: one a tile, but blocks that keep their weights go on from tile to tile,
/// and no more of them are launched than run at a time.
PUMICE_SHARED constexpr int64_t tile_blocks(const TileSpec& spec, int64_t tiles,
                                            int32_t multiprocessors) {
  const int64_t at_a_time = int64_t{multiprocessors} * spec.blocks_per_sm;
  return spec.resident_offsets > 0 && tiles > at_a_time ? at_a_time : tiles;
}

/// FNV-1a over the fields: host and device assert that they read the same value.
PUMICE_SHARED constexpr uint64_t fingerprint(const TileSpec& spec) {
  const int32_t fields[] = {static_cast<int32_t>(spec.instruction),
                            static_cast<int32_t>(spec.operand),
                            static_cast<int32_t>(spec.output),
                            static_cast<int32_t>(spec.gather),
                            static_cast<int32_t>(spec.write),
                            spec.in_channels,
                            spec.first_channels,
                            spec.out_channels,
                            spec.groups,
                            spec.shortcut_channels,
                            spec.shortcut_first_channels,
                            spec.tile_rows,
                            spec.tile_columns,
                            spec.tile_depth,
                            spec.stages,
                            spec.row_warps,
                            spec.column_warps,
                            spec.blocks_per_sm,
                            spec.resident_offsets,
                            spec.affine,
                            spec.residual,
                            static_cast<int32_t>(spec.activations)};
  uint64_t hash = 14695981039346656037u;
  for (const int32_t field : fields)
    hash = (hash ^ static_cast<uint32_t>(field)) * 1099511628211u;
  return hash;
}

}   // namespace pumice
