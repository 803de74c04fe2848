// The numbers of schedules, each by its name in texts of plans, with where it lies in a
// specification: one table for translating, writing and reading.
#pragma once

#include <pumice/plan/schedule.hpp>

namespace pumice {

template <class Schedule, class Spec> struct ScheduleField {
  const char* name;
  std::int32_t Schedule::*in_schedule;
  std::int32_t Spec::*in_spec;
};

inline constexpr ScheduleField<TileSchedule, TileSpec> kTileFields[] = {
    {"tile_rows", &TileSchedule::tile_rows, &TileSpec::tile_rows},
    {"tile_columns", &TileSchedule::tile_columns, &TileSpec::tile_columns},
    {"tile_depth", &TileSchedule::tile_depth, &TileSpec::tile_depth},
    {"stages", &TileSchedule::stages, &TileSpec::stages},
    {"row_warps", &TileSchedule::row_warps, &TileSpec::row_warps},
    {"column_warps", &TileSchedule::column_warps, &TileSpec::column_warps},
    {"blocks_per_sm", &TileSchedule::blocks_per_sm, &TileSpec::blocks_per_sm},
    {"resident_offsets", &TileSchedule::resident_offsets, &TileSpec::resident_offsets},
};

/// But for `share_blocks`, which is of a launch.
inline constexpr ScheduleField<GradientSchedule, GradientSpec> kGradientFields[] = {
    {"tile_in", &GradientSchedule::tile_in, &GradientSpec::tile_in},
    {"tile_out", &GradientSchedule::tile_out, &GradientSpec::tile_out},
    {"tile_pairs", &GradientSchedule::tile_pairs, &GradientSpec::tile_pairs},
    {"stages", &GradientSchedule::stages, &GradientSpec::stages},
    {"in_warps", &GradientSchedule::in_warps, &GradientSpec::in_warps},
    {"out_warps", &GradientSchedule::out_warps, &GradientSpec::out_warps},
    {"blocks_per_sm", &GradientSchedule::blocks_per_sm, &GradientSpec::blocks_per_sm},
};

}   // namespace pumice
