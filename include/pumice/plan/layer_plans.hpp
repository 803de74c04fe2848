// The plans of one layer: its forward pass and both gradients.
#pragma once

#include <string>
#include <string_view>

#include <pumice/plan/convolution_plan.hpp>

namespace pumice {

/// Null: chosen when it runs.
struct LayerPlans {
  PlanPtr forward{};
  PlanPtr input_gradient{};
  PlanPtr weight_gradient{};

  bool empty() const { return !forward && !input_gradient && !weight_gradient; }
  const PlanPtr& of(Direction direction) const;
  PlanPtr& of(Direction direction);
  /// Whether what multiplies by the weight rounds an f32 one where it packs it
  /// (`ConvolutionOptions::rounds_weight`), as implicit GEMM does.
  bool round_weights() const;
  /// But for the reasons.
  bool run_like(const LayerPlans& other) const;
};

/// JSON of one line, and back: {"forward":{"dataflow":…},"weight_gradient":{…}}. The text of one
/// plan is read as that of direction `alone`. UserError where the text is something else.
std::string to_text(const LayerPlans& plans);
LayerPlans parse_layer_plans(std::string_view text, Direction alone = Direction::forward);

}   // namespace pumice
