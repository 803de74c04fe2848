// How a kernel of a device is cut: the part of a specification that a plan chooses. The rest of it
// (TileSpec, GradientSpec) follows from the problem.
#pragma once

#include <string>

#include <pumice/shared/gradient_spec.h>
#include <pumice/shared/tile_spec.h>

namespace pumice {

/// Of a forward pass or an input gradient; the fields are those of TileSpec.
struct TileSchedule {
  Instruction instruction = Instruction::mma_sync;
  std::int32_t tile_rows = 128;
  std::int32_t tile_columns = 64;
  std::int32_t tile_depth = 32;
  std::int32_t stages = 4;
  std::int32_t row_warps = 4;
  std::int32_t column_warps = 1;
  std::int32_t blocks_per_sm = 1;
  std::int32_t resident_offsets = 0;

  /// "wgmma_128x96x96_s5_w8x1_b2"
  std::string name() const;
  friend bool operator==(const TileSchedule&, const TileSchedule&) = default;
};

/// Of a weight gradient; the fields are those of GradientSpec.
struct GradientSchedule {
  Instruction instruction = Instruction::mma_sync;
  std::int32_t tile_in = 64;
  std::int32_t tile_out = 64;
  std::int32_t tile_pairs = 32;
  std::int32_t stages = 4;
  std::int32_t in_warps = 2;
  std::int32_t out_warps = 2;
  std::int32_t blocks_per_sm = 1;
  /// Thread blocks that share the pairs; 0: as many as run at a time.
  std::int32_t share_blocks = 0;

  /// "wgmma_128x128x64_s6_w8x1"
  std::string name() const;
  friend bool operator==(const GradientSchedule&, const GradientSchedule&) = default;
};

/// The schedule of a specification, and a specification with another schedule.
TileSchedule schedule_of(const TileSpec& spec);
TileSpec with(TileSpec spec, const TileSchedule& schedule);
GradientSchedule schedule_of(const GradientSpec& spec);
GradientSpec with(GradientSpec spec, const GradientSchedule& schedule);

}   // namespace pumice
