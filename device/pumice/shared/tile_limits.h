// Which tile specifications exist: what a kernel can be built from, and for which architectures.
#pragma once

#include <pumice/shared/tile_map.h>
#include <pumice/shared/tile_spec.h>

namespace pumice {

/// Bits of a set. sm_90a is Hopper with its own instructions.
enum Architecture : uint32_t {
  kSm80 = 1,
  kSm86 = 2,
  kSm89 = 4,
  kSm90a = 8,
  kSm100 = 16,
  kSm120 = 32,
};
inline constexpr uint32_t kAllArchitectures = 63;

/// Dynamic shared memory that one thread block may have, and that a multiprocessor has.
PUMICE_SHARED constexpr int32_t block_shared_limit(uint32_t architecture) {
  return architecture == kSm80                            ? 163 * 1024
         : (architecture & (kSm86 | kSm89 | kSm120)) != 0 ? 99 * 1024
                                                          : 227 * 1024;
}

inline constexpr int32_t kReservedShared = 1024;   // what the driver takes of it for each block
inline constexpr int32_t kRegisters = 65536;       // of a multiprocessor

/// Registers a thread gets when the kernel starts: a multiple of 8, at most 255.
template <class Spec> PUMICE_SHARED constexpr int32_t start_registers(const Spec& spec) {
  const int32_t share = kRegisters / (threads(spec) * spec.blocks_per_sm) / 8 * 8;
  return share < 248 ? share : 248;
}

/// wgmma moves registers from the warpgroup that gathers to those that multiply. Addresses of 16
/// rows in flight need 56; blocks that share a multiprocessor copy fewer rows and make do with 40.
template <class Spec> PUMICE_SHARED constexpr int32_t gather_registers(const Spec& spec) {
  return start_registers(spec) >= 128 ? 56 : 40;
}

template <class Spec> PUMICE_SHARED constexpr int32_t multiply_registers(const Spec& spec) {
  const int32_t warpgroups = multiplying_warps(spec) / 4;
  const int32_t pool = start_registers(spec) * (warpgroups + 1) - gather_registers(spec);
  const int32_t share = pool / warpgroups / 8 * 8;
  return share < 240 ? share : 240;
}

/// Registers of a thread that multiplies.
PUMICE_SHARED constexpr int32_t multiplying_registers(const TileSpec& spec) {
  return spec.instruction == Instruction::wgmma ? multiply_registers(spec) : start_registers(spec);
}

namespace detail {

PUMICE_SHARED constexpr const char* invalid_channels(const TileSpec& spec) {
  if (spec.in_channels < 1 || spec.out_channels < 1 || spec.groups < 1)
    return "channels and groups are at least 1";
  if (spec.first_channels < 1 || spec.first_channels > spec.in_channels)
    return "first_channels is between 1 and in_channels";
  if (spec.shortcut_first_channels < 0 || spec.shortcut_first_channels > spec.shortcut_channels ||
      (spec.shortcut_channels > 0) != (spec.shortcut_first_channels > 0))
    return "shortcut_first_channels is between 1 and shortcut_channels, or both are 0";
  if (spec.groups > 1 && (spec.first_channels != spec.in_channels || spec.shortcut_channels != 0))
    return "groups have one source and no shortcut";
  return nullptr;
}

PUMICE_SHARED constexpr const char* invalid_tile(const TileSpec& spec) {
  if (spec.tile_rows < kBlockRows || spec.tile_rows % kBlockRows != 0 ||
      spec.tile_rows / kBlockRows > kMaxTileBlocks)
    return "tile_rows is a multiple of 64 up to 1024";
  if (depth_bytes(spec) < 32 || depth_bytes(spec) % 32 != 0)
    return "tile_depth is a multiple of 32 bytes";
  if (spec.tile_columns < 8 || spec.tile_columns % 8 != 0 || spec.tile_columns > 256)
    return "tile_columns is a multiple of 8 up to 256";
  if (spec.stages < 2 || spec.stages > 16) return "stages are 2 to 16";
  if (spec.row_warps < 1 || spec.column_warps < 1 || threads(spec) > 1024)
    return "a block has 1 to 1024 threads";
  return nullptr;
}

PUMICE_SHARED constexpr const char* invalid_types(const TileSpec& spec) {
  if ((spec.instruction == Instruction::fma) != (spec.operand == ElementType::f32))
    return "fp32 operands and fp32 multiply-adds go together";
  if (spec.output == ElementType::tf32) return "the output is stored as f32, f16 or bf16";
  return nullptr;
}

/// Rows that one warp of the `gathering` ones copies, in whole passes.
PUMICE_SHARED constexpr bool gathers_evenly(const TileSpec& spec, int32_t gathering) {
  const int32_t rows_a_pass = kWarpLanes * kChunkBytes / swizzle_bytes(spec);
  if (spec.tile_rows % gathering != 0) return false;
  const int32_t rows = spec.tile_rows / gathering;
  return rows % rows_a_pass == 0 && (rows % kWarpLanes == 0 || kWarpLanes % rows == 0);
}

PUMICE_SHARED constexpr const char* invalid_warps(const TileSpec& spec) {
  if (spec.instruction == Instruction::wgmma) {
    if (spec.row_warps % 4 != 0 || spec.column_warps != 1)
      return "wgmma multiplies with whole warpgroups along the rows";
    if (spec.tile_rows % (spec.row_warps / 4 * kBlockRows) != 0)
      return "a warpgroup multiplies whole blocks of 64 rows";
    if (input_copy_bytes(spec) != kChunkBytes) return "wgmma gathers rows of whole 16-byte chunks";
    if (!gathers_evenly(spec, 4)) return "the gathering warps share the rows evenly";
    const int32_t sums = spec.tile_rows / (spec.row_warps / 4) / kBlockRows * spec.tile_columns / 2;
    if (sums + 40 > multiply_registers(spec)) return "the sums do not fit into registers";
    if (spec.tile_columns / 2 + 26 > start_registers(spec))
      return "an instruction of so many columns needs more registers at the start";
    return nullptr;
  }
  const int32_t rows = spec.tile_rows / spec.row_warps;
  const int32_t columns = spec.tile_columns / spec.column_warps;
  if (spec.tile_rows % spec.row_warps != 0 || rows % 16 != 0)
    return "a warp multiplies a multiple of 16 rows";
  if (rows > kBlockRows ? rows % kBlockRows != 0 : kBlockRows % rows != 0)
    return "a warp's rows and the blocks of 64 rows do not overlap";
  if (spec.tile_columns % spec.column_warps != 0 || columns % 16 != 0)
    return "a warp multiplies a multiple of 16 columns";
  if (spec.instruction == Instruction::fma && (rows % 16 != 0 || columns % 32 != 0))
    return "with multiply-adds a warp has a multiple of 32 columns";
  if (!gathers_evenly(spec, multiplying_warps(spec))) return "the warps share the rows evenly";
  const int32_t sums = rows * columns / kWarpLanes;
  if (sums > 128) return "a thread holds up to 128 sums";
  return nullptr;
}

PUMICE_SHARED constexpr const char* invalid_resident(const TileSpec& spec) {
  if (spec.resident_offsets == 0) return nullptr;
  if (spec.resident_offsets < 0 || spec.instruction != Instruction::mma_sync ||
      element_bytes(spec.operand) != 2)
    return "weights stay in shared memory with mma_sync and 16-bit operands only";
  if (spec.tile_depth != 16 && spec.tile_depth != 32)
    return "with resident weights a lane has 4 or 8 channels: tile_depth 16 or 32";
  if (spec.in_channels > spec.tile_depth || spec.out_channels > spec.tile_columns)
    return "with resident weights all channels are in one tile";
  if (spec.column_warps != 1 || warp_rows(spec) > kWarpLanes)
    return "with resident weights a warp has 16 or 32 rows and all columns";
  if (spec.gather != Gather::map || spec.groups != 1 || spec.shortcut_channels != 0 ||
      spec.first_channels != spec.in_channels)
    return "with resident weights there is a map, one group, one source and no shortcut";
  return nullptr;
}

}   // namespace detail

/// Null, or why no kernel can be built from this.
PUMICE_SHARED constexpr const char* why_invalid(const TileSpec& spec) {
  if (const char* why = detail::invalid_channels(spec)) return why;
  if (const char* why = detail::invalid_types(spec)) return why;
  if (const char* why = detail::invalid_tile(spec)) return why;
  if (const char* why = detail::invalid_warps(spec)) return why;
  if (const char* why = detail::invalid_resident(spec)) return why;
  if (spec.blocks_per_sm < 1 ||
      spec.blocks_per_sm * (shared_bytes(spec) + kReservedShared) > 228 * 1024)
    return "the blocks of a multiprocessor have 228 KB of shared memory";
  return nullptr;
}

PUMICE_SHARED constexpr bool is_valid(const TileSpec& spec) {
  return why_invalid(spec) == nullptr;
}

/// The architectures that have the instruction, and room on a multiprocessor for `blocks` blocks.
PUMICE_SHARED constexpr uint32_t architectures_with(Instruction instruction, int32_t blocks,
                                                    int32_t shared_bytes) {
  uint32_t result = 0;
  for (uint32_t one = kSm80; one <= kSm120; one <<= 1) {
    if (instruction == Instruction::wgmma && one != kSm90a) continue;
    const int32_t shared = blocks * (shared_bytes + kReservedShared);
    if (shared <= block_shared_limit(one) + kReservedShared) result |= one;
  }
  return result;
}

/// The architectures a valid spec compiles and fits for.
PUMICE_SHARED constexpr uint32_t architectures(const TileSpec& spec) {
  return architectures_with(spec.instruction, spec.blocks_per_sm, shared_bytes(spec));
}

}   // namespace pumice
