// Asks the plans.
#include "nn/chain/fusions.hpp"

#include <algorithm>

#include <pumice/plan/choose.hpp>

#include "nn/chain/passes.hpp"
#include "ops/planned_call.hpp"

namespace pumice::nn {

Fusions::Fusions(const Chain& chain, const ChainInput& input,
                 std::span<const ConstTensorView> weights, Shortcuts shortcuts)
    : chain_(chain),
      structure_(chain.structure()),
      input_(input),
      weights_(weights),
      where_(shortcuts),
      apart_(structure_.joins.size(), 0),
      shortcuts_(chain.size()),
      runs_in_another_(chain.size(), 0),
      last_use_(structure_.last_use) {
  if (!is_on_device(input)) return;
  std::fill(apart_.begin(), apart_.end(), 1);
  choose_shortcuts();
  bool some_are_made = false;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const std::size_t source = structure_.sources[i];
    if (!is_apart(source) || runs_in_another(i) || is_fused(i, shortcut_of(i))) continue;
    apart_[structure_.join_number(source)] = 0;
    some_are_made = true;
  }
  if (some_are_made) choose_shortcuts();   // whose inputs may lie in one tensor now
  keep_what_shortcuts_take();
}

void Fusions::choose_shortcuts() {
  if (where_ == Shortcuts::by_themselves) return;
  std::fill(runs_in_another_.begin(), runs_in_another_.end(), 0);
  for (std::size_t i = 0; i < chain_.size(); ++i) {
    const std::optional<std::size_t> shortcut = structure_.shortcuts[i];
    shortcuts_[i].reset();
    if (!shortcut || !can_run_in(*shortcut, i) || !is_fused(i, shortcut)) continue;
    shortcuts_[i] = shortcut;
    runs_in_another_[*shortcut] = 1;
  }
}

bool Fusions::fits_together(std::span<const ConstTensorView> weights, std::size_t link,
                            std::size_t shortcut) {
  return weights[shortcut].extent(0) == 1 && weights[shortcut].extent(2) == weights[link].extent(2);
}

bool Fusions::can_run_in(std::size_t shortcut, std::size_t link) const {
  const KernelMapView& map = input_.maps[shortcut];
  return chain_.links()[shortcut].plans.forward == nullptr &&
         fits_together(weights_, link, shortcut) && map.offsets == 1 && map.has_identity_offset &&
         map.in_rows == map.out_rows && map.out_rows == input_.maps[link].out_rows;
}

bool Fusions::is_fused(std::size_t link, std::optional<std::size_t> shortcut) const {
  const ValueShapes shapes(structure_, input_, weights_);
  ConvolutionOptions options = options_of(input_);
  set_inputs(options, link, shortcut, shapes);
  const KernelMapView& map = input_.maps[link];
  const ConvolutionProblem problem =
      convolution_problem(features_of(link, shapes), weights_[link], map, options);
  const ConvolutionPlan* given = chain_.links()[link].plans.forward.get();
  if (given != nullptr)
    return given->fuses_inputs && can_fuse_inputs(problem, target_of(map.device), given->dataflow);
  return plan_for(problem, map.device, options)->fuses_inputs;
}

void Fusions::keep_what_shortcuts_take() {
  for (std::size_t i = 0; i < chain_.size(); ++i) {
    if (!shortcuts_[i]) continue;
    for_each_taken(structure_, chain_.links()[*shortcuts_[i]], *shortcuts_[i],
                   [&](std::size_t value) { last_use_[value] = std::max(last_use_[value], i); });
  }
}

}   // namespace pumice::nn
