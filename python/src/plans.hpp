// Plans of convolutions as Python holds them: values that do not change.
#pragma once

#include <string>
#include <utility>

#include <pumice/plan/layer_plans.hpp>

#include "framework.hpp"

namespace pumice::python {

/// One plan and its text, which tells plans apart.
struct Plan {
  explicit Plan(PlanPtr made) : plan(std::move(made)), text(to_text(*plan)) {}

  PlanPtr plan;
  std::string text;
};

/// The plans of one layer, likewise.
struct Plans {
  explicit Plans(LayerPlans made) : plans(std::move(made)), text(to_text(plans)) {}

  LayerPlans plans;
  std::string text;
};

/// Null where nothing is given.
inline const ConvolutionPlan* plan_in(const Plans* given, Direction direction) {
  return given == nullptr ? nullptr : given->plans.of(direction).get();
}

}   // namespace pumice::python
