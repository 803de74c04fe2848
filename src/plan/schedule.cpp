// Between schedules and specifications, field by field.
#include <pumice/plan/schedule.hpp>

#include <fmt/format.h>

#include "plan/spec_names.hpp"

namespace pumice {

std::string TileSchedule::name() const {
  std::string text =
      fmt::format("{}{}_{}x{}x{}_s{}_w{}x{}", cuda::name_of(instruction),
                  resident_offsets > 0 ? "_resident" : "", tile_rows, tile_columns, tile_depth,
                  stages, row_warps, column_warps);
  if (blocks_per_sm > 1) text += fmt::format("_b{}", blocks_per_sm);
  return text;
}

std::string GradientSchedule::name() const {
  std::string text = fmt::format("{}_{}x{}x{}_s{}_w{}x{}", cuda::name_of(instruction), tile_in,
                                 tile_out, tile_pairs, stages, in_warps, out_warps);
  if (blocks_per_sm > 1) text += fmt::format("_b{}", blocks_per_sm);
  if (share_blocks > 0) text += fmt::format("/shares {}", share_blocks);
  return text;
}

TileSchedule schedule_of(const TileSpec& spec) {
  return {.instruction = spec.instruction,
          .tile_rows = spec.tile_rows,
          .tile_columns = spec.tile_columns,
          .tile_depth = spec.tile_depth,
          .stages = spec.stages,
          .row_warps = spec.row_warps,
          .column_warps = spec.column_warps,
          .blocks_per_sm = spec.blocks_per_sm,
          .resident_offsets = spec.resident_offsets};
}

TileSpec with(TileSpec spec, const TileSchedule& schedule) {
  spec.instruction = schedule.instruction;
  spec.tile_rows = schedule.tile_rows;
  spec.tile_columns = schedule.tile_columns;
  spec.tile_depth = schedule.tile_depth;
  spec.stages = schedule.stages;
  spec.row_warps = schedule.row_warps;
  spec.column_warps = schedule.column_warps;
  spec.blocks_per_sm = schedule.blocks_per_sm;
  spec.resident_offsets = schedule.resident_offsets;
  return spec;
}

GradientSchedule schedule_of(const GradientSpec& spec) {
  return {.instruction = spec.instruction,
          .tile_in = spec.tile_in,
          .tile_out = spec.tile_out,
          .tile_pairs = spec.tile_pairs,
          .stages = spec.stages,
          .in_warps = spec.in_warps,
          .out_warps = spec.out_warps,
          .blocks_per_sm = spec.blocks_per_sm};
}

GradientSpec with(GradientSpec spec, const GradientSchedule& schedule) {
  spec.instruction = schedule.instruction;
  spec.tile_in = schedule.tile_in;
  spec.tile_out = schedule.tile_out;
  spec.tile_pairs = schedule.tile_pairs;
  spec.stages = schedule.stages;
  spec.in_warps = schedule.in_warps;
  spec.out_warps = schedule.out_warps;
  spec.blocks_per_sm = schedule.blocks_per_sm;
  return spec;
}

}   // namespace pumice
