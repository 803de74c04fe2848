// Names of schedules, and the way between them and specifications.
#include <cstddef>

#include <pumice/plan/schedule.hpp>

#include <fmt/format.h>

#include "plan/schedule_fields.hpp"
#include "plan/spec_names.hpp"

namespace pumice {

std::string TileSchedule::name() const {
  std::string text = fmt::format("{}{}_{}x{}x{}_s{}_w{}x{}", cuda::name_of(instruction),
                                 resident_offsets > 0 ? "_resident" : "", tile_rows, tile_columns,
                                 tile_depth, stages, row_warps, column_warps);
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

namespace {

template <class Schedule, class Spec, std::size_t kCount>
Schedule out_of(const Spec& spec, const ScheduleField<Schedule, Spec> (&fields)[kCount]) {
  Schedule schedule;
  schedule.instruction = spec.instruction;
  for (const auto& field : fields)
    schedule.*field.in_schedule = spec.*field.in_spec;
  return schedule;
}

template <class Schedule, class Spec, std::size_t kCount>
Spec into(Spec spec, const Schedule& schedule,
          const ScheduleField<Schedule, Spec> (&fields)[kCount]) {
  spec.instruction = schedule.instruction;
  for (const auto& field : fields)
    spec.*field.in_spec = schedule.*field.in_schedule;
  return spec;
}

}   // namespace

TileSchedule schedule_of(const TileSpec& spec) {
  return out_of(spec, kTileFields);
}

TileSpec with(TileSpec spec, const TileSchedule& schedule) {
  return into(spec, schedule, kTileFields);
}

GradientSchedule schedule_of(const GradientSpec& spec) {
  return out_of(spec, kGradientFields);
}

GradientSpec with(GradientSpec spec, const GradientSchedule& schedule) {
  return into(spec, schedule, kGradientFields);
}

}   // namespace pumice
