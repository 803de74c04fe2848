// How a forward pass is to be run.
#pragma once

#include <optional>

#include <pumice/core/numerics.hpp>
#include <pumice/nn/profile.hpp>
#include <pumice/plan/convolution_plan.hpp>
#include <pumice/plan/plan_book.hpp>

namespace pumice::nn {

struct Context {
  /// Keep what the backward pass needs. Off: features are freed as soon as they are used.
  bool record = false;
  /// Forces one dataflow on every convolution; absent: each one's plan decides.
  std::optional<Dataflow> dataflow{};
  /// Of convolutions and linear layers, in this pass and in the gradients that it records.
  Numerics numerics{};
  /// Plans that convolutions take before their rules' ones, but after what was measured to be
  /// better (pumice/plan/shared_cuts.hpp); they outlive the pass. Null: each follows the rules.
  const PlanBook* shared_plans = nullptr;
  /// Receives one record a layer; null: nothing is timed.
  Profile* profile = nullptr;
};

}   // namespace pumice::nn
