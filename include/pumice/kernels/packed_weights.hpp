// Weights in the forms in which kernels read them, kept for later calls.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <pumice/kernels/weight_panels.hpp>

namespace pumice {

namespace cuda {
class PackedTiles;
}

/// What was packed of one weight tensor, on the CPU or on a device. Whoever changes the weights
/// clears it. Not thread-safe, as the layer that holds it is not.
class PackedWeights {
 public:
  PackedWeights();
  ~PackedWeights();
  PackedWeights(PackedWeights&&) noexcept;
  PackedWeights& operator=(PackedWeights&&) noexcept;

  void clear();

  // For the back ends.
  /// Of `weight` [K, C_in / groups, C_out] on the CPU; packed where that has not happened yet.
  /// Valid until `clear`, or until one of another shape or type is asked for.
  const WeightPanels& panels(const ConstTensorView& weight, std::int64_t groups, bool transpose);
  cuda::PackedTiles& tiles();

 private:
  struct Forms;
  std::unique_ptr<Forms> forms_;
};

/// Weights that are kept, or are packed for one call.
class WeightsInUse {
 public:
  /// `kept`: null for one call.
  explicit WeightsInUse(PackedWeights* kept) : in_use_(kept) {
    if (kept == nullptr) in_use_ = &for_this_call_.emplace();
  }
  WeightsInUse(const WeightsInUse&) = delete;
  WeightsInUse& operator=(const WeightsInUse&) = delete;
  PackedWeights* operator->() const { return in_use_; }

 private:
  std::optional<PackedWeights> for_this_call_;
  PackedWeights* in_use_;
};

}   // namespace pumice
