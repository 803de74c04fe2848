// How a forward pass is to be run.
#pragma once

#include <optional>

#include <pumice/nn/profile.hpp>
#include <pumice/plan/convolution_plan.hpp>

namespace pumice::nn {

struct Context {
  /// Keep what the backward pass needs. Off: features are freed as soon as they are used.
  bool record = false;
  /// Forces one dataflow on every convolution; absent: each one's plan decides.
  std::optional<Dataflow> dataflow{};
  /// Receives one record a layer; null: nothing is timed.
  Profile* profile = nullptr;
};

}   // namespace pumice::nn
