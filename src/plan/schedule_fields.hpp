// The numbers of schedules, each by its name in texts of plans, with where it lies in a
// specification and which values it may have: one table for translating, writing, reading and
// checking. Within these bounds nothing that is computed of a schedule overflows or divides by 0;
// whether a kernel can be built of it, `why_invalid` of the specification says.
#pragma once

#include <pumice/plan/schedule.hpp>

namespace pumice {

template <class Schedule, class Spec> struct ScheduleField {
  const char* name;
  std::int32_t Schedule::*in_schedule;
  std::int32_t Spec::*in_spec;
  std::int32_t least, most;
};

inline constexpr std::int32_t kMostShareBlocks = 65536;

inline constexpr ScheduleField<TileSchedule, TileSpec> kTileFields[] = {
    {"tile_rows", &TileSchedule::tile_rows, &TileSpec::tile_rows, 64, 1024},
    {"tile_columns", &TileSchedule::tile_columns, &TileSpec::tile_columns, 8, 256},
    {"tile_depth", &TileSchedule::tile_depth, &TileSpec::tile_depth, 8, 512},
    {"stages", &TileSchedule::stages, &TileSpec::stages, 2, 16},
    {"row_warps", &TileSchedule::row_warps, &TileSpec::row_warps, 1, 32},
    {"column_warps", &TileSchedule::column_warps, &TileSpec::column_warps, 1, 32},
    {"blocks_per_sm", &TileSchedule::blocks_per_sm, &TileSpec::blocks_per_sm, 1, 32},
    {"resident_offsets", &TileSchedule::resident_offsets, &TileSpec::resident_offsets, 0, 1024},
};

/// But for `share_blocks`, which is of a launch.
inline constexpr ScheduleField<GradientSchedule, GradientSpec> kGradientFields[] = {
    {"tile_in", &GradientSchedule::tile_in, &GradientSpec::tile_in, 8, 1024},
    {"tile_out", &GradientSchedule::tile_out, &GradientSpec::tile_out, 8, 1024},
    {"tile_pairs", &GradientSchedule::tile_pairs, &GradientSpec::tile_pairs, 32, 256},
    {"stages", &GradientSchedule::stages, &GradientSpec::stages, 2, 16},
    {"in_warps", &GradientSchedule::in_warps, &GradientSpec::in_warps, 1, 32},
    {"out_warps", &GradientSchedule::out_warps, &GradientSpec::out_warps, 1, 32},
    {"blocks_per_sm", &GradientSchedule::blocks_per_sm, &GradientSpec::blocks_per_sm, 1, 32},
};

}   // namespace pumice
