// Plans as JSON.
#include <pumice/plan/convolution_plan.hpp>

#include <array>

#include "plan/plan_fields.hpp"
#include "plan/schedule_fields.hpp"
#include "plan/spec_names.hpp"

namespace pumice {
namespace {

using Json = PlanJson;
using Fields = PlanFields;

constexpr std::array kInstructions{Instruction::fma, Instruction::mma_sync, Instruction::wgmma};
constexpr std::array kWrites{Write::store, Write::add, Write::slots};
constexpr std::array kAllDataflows{Dataflow::gather_gemm_scatter, Dataflow::fetch_on_demand,
                                   Dataflow::implicit_gemm, Dataflow::sum_over_pairs};

template <class Schedule, class Spec, std::size_t kCount>
Json to_json(const Schedule& schedule, const ScheduleField<Schedule, Spec> (&fields)[kCount]) {
  Json object{{"instruction", cuda::name_of(schedule.instruction)}};
  for (const auto& field : fields)
    object[field.name] = schedule.*field.in_schedule;
  return object;
}

template <class Schedule, class Spec, std::size_t kCount>
Schedule schedule_in(Fields& fields, const ScheduleField<Schedule, Spec> (&known)[kCount]) {
  Schedule schedule;
  fields.read("instruction", schedule.instruction, kInstructions,
              [](Instruction one) { return cuda::name_of(one); });
  for (const auto& field : known)
    fields.read(field.name, schedule.*field.in_schedule);
  return schedule;
}

}   // namespace

std::string to_text(const ConvolutionPlan& plan) {
  Json object{{"dataflow", name_of(plan.dataflow)}};
  if (plan.tile_rows > 0) object["tile_rows"] = plan.tile_rows;
  if (plan.sort_by_mask) object["sort_by_mask"] = true;
  if (plan.splits > 1) object["splits"] = plan.splits;
  if (plan.write != Write::store) object["write"] = cuda::name_of(plan.write);
  if (plan.fuses_inputs) object["fuses_inputs"] = true;
  if (plan.tile) object["tile"] = to_json(*plan.tile, kTileFields);
  if (plan.gradient) {
    object["gradient"] = to_json(*plan.gradient, kGradientFields);
    object["gradient"]["share_blocks"] = plan.gradient->share_blocks;
  }
  return object.dump();
}

ConvolutionPlan parse_plan(std::string_view text) {
  const Json object = Json::parse(text, nullptr, false);
  if (object.is_discarded()) refuse_plan(text, "it is no JSON");
  ConvolutionPlan plan;
  Fields fields(text, object);
  if (!object.contains("dataflow")) refuse_plan(text, "it names no dataflow");
  fields.read("dataflow", plan.dataflow, kAllDataflows, [](Dataflow one) { return name_of(one); });
  fields.read("tile_rows", plan.tile_rows, 0);
  fields.read("sort_by_mask", plan.sort_by_mask);
  fields.read("splits", plan.splits, 1);
  fields.read("write", plan.write, kWrites, [](Write one) { return cuda::name_of(one); });
  fields.read("fuses_inputs", plan.fuses_inputs);
  if (const Json tile = fields.take("tile"); !tile.is_null()) {
    Fields of_tile(text, tile, "tile");
    plan.tile = schedule_in(of_tile, kTileFields);
    of_tile.end();
  }
  if (const Json gradient = fields.take("gradient"); !gradient.is_null()) {
    Fields of_gradient(text, gradient, "gradient");
    plan.gradient = schedule_in(of_gradient, kGradientFields);
    of_gradient.read("share_blocks", plan.gradient->share_blocks);
    of_gradient.end();
  }
  fields.end();
  plan.reason = "given";
  return plan;
}

}   // namespace pumice
