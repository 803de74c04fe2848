// How a forward pass is to be run.
#pragma once

#include <optional>

#include <pumice/nn/profile.hpp>
#include <pumice/plan/convolution_plan.hpp>
#include <pumice/plan/plan_book.hpp>

namespace pumice::nn {

struct Context {
  /// Keep what the backward pass needs. Off: features are freed as soon as they are used.
  bool record = false;
  /// Forces one dataflow on every convolution; absent: each one's plan decides.
  std::optional<Dataflow> dataflow{};
  /// On a device: the same bits every time, in this pass and in the gradients that it records, for
  /// some time and memory. On the CPU they always are.
  bool deterministic = false;
  /// On a device: f32 features are multiplied as tf32 by convolutions and linear layers, here and
  /// in the gradients that are recorded. UserError where features are of another type or on the
  /// CPU.
  bool tf32 = false;
  /// Plans that convolutions take before their rules' ones, but after what was measured to be
  /// better (pumice/plan/shared_cuts.hpp); they outlive the pass. Null: each follows the rules.
  const PlanBook* shared_plans = nullptr;
  /// Receives one record a layer; null: nothing is timed.
  Profile* profile = nullptr;
};

}   // namespace pumice::nn
