// Three plans as JSON, and what they have in common.
#include <pumice/plan/layer_plans.hpp>

#include <array>
#include <utility>

#include <pumice/core/error.hpp>

#include <nlohmann/json.hpp>

#include "core/printable.hpp"

namespace pumice {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kDirections{Direction::forward, Direction::input_gradient,
                                 Direction::weight_gradient};
constexpr std::size_t kShown = 200;   // characters of a text that is none

}   // namespace

const PlanPtr& LayerPlans::of(Direction direction) const {
  switch (direction) {
    case Direction::forward: return forward;
    case Direction::input_gradient: return input_gradient;
    case Direction::weight_gradient: return weight_gradient;
  }
  PUMICE_ENSURES(false, "direction ", static_cast<int>(direction));
  return forward;
}

PlanPtr& LayerPlans::of(Direction direction) {
  return const_cast<PlanPtr&>(std::as_const(*this).of(direction));
}

bool LayerPlans::round_weights() const {
  for (const PlanPtr& plan : {forward, input_gradient}) {
    if (plan != nullptr && plan->dataflow != Dataflow::implicit_gemm) return false;
  }
  return true;
}

bool LayerPlans::run_like(const LayerPlans& other) const {
  for (const Direction direction : kDirections) {
    const PlanPtr& mine = of(direction);
    const PlanPtr& theirs = other.of(direction);
    if ((mine == nullptr) != (theirs == nullptr)) return false;
    if (mine != nullptr && !mine->runs_like(*theirs)) return false;
  }
  return true;
}

std::string to_text(const LayerPlans& plans) {
  Json object = Json::object();
  for (const Direction direction : kDirections) {
    if (const PlanPtr& plan = plans.of(direction))
      object[std::string(name_of(direction))] = Json::parse(to_text(*plan));
  }
  return object.dump();
}

LayerPlans parse_layer_plans(std::string_view text, Direction alone) {
  const Json object = Json::parse(text, nullptr, false);
  PUMICE_EXPECTS(object.is_object(), "plans \"", printable(text, kShown),
                 "\": it is no JSON object; give the text of a plan, or {\"forward\": PLAN}, and "
                 "input_gradient and weight_gradient where they have plans");
  const auto made = [](std::string_view of) {
    return std::make_shared<const ConvolutionPlan>(parse_plan(of));
  };
  LayerPlans plans;
  if (object.contains("dataflow")) {
    plans.of(alone) = made(text);
    return plans;
  }
  std::size_t known = 0;
  for (const Direction direction : kDirections) {
    const auto found = object.find(std::string(name_of(direction)));
    if (found == object.end()) continue;
    plans.of(direction) = made(found->dump());
    ++known;
  }
  PUMICE_EXPECTS(known == object.size(), "plans \"", printable(text, kShown),
                 "\": there are forward, input_gradient and weight_gradient, and nothing else");
  return plans;
}

}   // namespace pumice
