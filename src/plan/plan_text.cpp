// Plans as JSON.
#include <pumice/plan/convolution_plan.hpp>

#include <array>
#include <utility>

#include <pumice/core/error.hpp>

#include <nlohmann/json.hpp>

#include "core/printable.hpp"
#include "plan/schedule_fields.hpp"
#include "plan/spec_names.hpp"

namespace pumice {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShown = 200;   // characters of a text that is no plan

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  detail::raise_user("plan \"", printable(text, kShown), "\": ", why,
                     "; give the text of a plan, as explain() and plan files have it");
}

/// Reads fields by name, and knows which of them nobody asked for.
class Fields {
 public:
  /// `name`: what an error calls the object.
  Fields(std::string_view text, const Json& object, const std::string& name = "it")
      : text_(text), left_(object) {
    if (!left_.is_object()) refuse(text_, name + " is no JSON object");
  }

  template <class Value> void read(const char* name, Value& value) {
    const auto found = left_.find(name);
    if (found == left_.end()) return;
    const bool fits =
        std::is_same_v<Value, bool> ? found->is_boolean() : found->is_number_integer();
    if (!fits) refuse(text_, std::string(name) + " is of another type");
    if constexpr (std::is_same_v<Value, bool>) {
      value = found->template get<bool>();
    } else {
      const auto number = found->template get<std::int64_t>();
      if (!std::in_range<Value>(number)) refuse(text_, std::string(name) + " is too large");
      value = static_cast<Value>(number);
    }
    left_.erase(found);
  }

  /// The same of a number that is at least `least`.
  template <class Value> void read(const char* name, Value& value, std::int64_t least) {
    read(name, value);
    if (value < least)
      refuse(text_, std::string(name) + " = " + std::to_string(value) + " is less than " +
                        std::to_string(least));
  }

  /// One of `choices` by its name.
  template <class Value, std::size_t kCount, class NameOf>
  void read(const char* name, Value& value, const std::array<Value, kCount>& choices,
            NameOf&& name_of_choice) {
    const auto found = left_.find(name);
    if (found == left_.end()) return;
    for (const Value choice : choices) {
      if (!found->is_string() || found->template get<std::string>() != name_of_choice(choice))
        continue;
      value = choice;
      left_.erase(found);
      return;
    }
    refuse(text_, std::string(name) + " has a value that is not known");
  }

  /// The object `name`, or null.
  Json take(const char* name) {
    const auto found = left_.find(name);
    if (found == left_.end()) return nullptr;
    Json value = std::move(*found);
    left_.erase(found);
    return value;
  }

  void end() const {
    if (!left_.empty())
      refuse(text_, "\"" + printable(left_.begin().key()) + "\" is no part of a plan");
  }

 private:
  std::string_view text_;
  Json left_;
};

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
  if (object.is_discarded()) refuse(text, "it is no JSON");
  ConvolutionPlan plan;
  Fields fields(text, object);
  if (!object.contains("dataflow")) refuse(text, "it names no dataflow");
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
